// The format of a training journal (training_journal.hpp), version 1, and its reader.
//
// A journal is a sequence of entries, little-endian:
//
//   1 byte    event in the low 5 bits, log2 of the program unit in the high 3
//   3 bytes   size of the body
//   body      the records of the event, as they stand in memory
//   zeros     until the entry is a multiple of the program unit
//   4 bytes   CRC of all of the entry before it, which begins with the CRC of the entry before; kSession:
//   with 0
//
// Each start of a device begins with kSession. A power cut leaves part of the last entry, possibly followed
// by erased bytes. Anything else between two entries is damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <attune/core/status.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/persistence/crc32.hpp>

namespace ATTUNE_NAMESPACE {

/// The version of the format that this library writes.
inline constexpr std::uint32_t kJournalVersion = 1;

/// Events of a training, in entries of a journal. Parentheses name the record of each.
enum class JournalEvent : std::uint8_t {
  kSession = 1,    // the device started (JournalSession)
  kStarted,        // the program started the trainer with `number` (JournalPoint)
  kResumed,        // the trainer resumed from a saved state (JournalPoint)
  kSequence,       // a sequence was accumulated (its number, 4 bytes)
  kSequenceBytes,  // a sequence was accumulated (the bytes of input, target and mask)
  kUpdated,        // an update or a discarded batch (Status as 4 bytes, options, clipping if used)
  kDiscarded,      // the batch was discarded (no record)
  kSaving,         // the state is about to be saved (JournalPoint)
  kHash,           // hash of the current parameters (hash_bits, 4 bytes)
  kLoaded,         // the state changed elsewhere, such as by load() (the bytes of Trainer::State)
};
/// The last event of this version.
inline constexpr std::uint32_t kLastJournalEvent = static_cast<std::uint32_t>(JournalEvent::kLoaded);

/// Model and arithmetic of a session.
struct JournalSession {
  std::uint32_t version;      // kJournalVersion
  std::uint32_t fingerprint;  // TrainingState::kFingerprint
  std::uint32_t numbers;      // TrainingState::numbers(): arithmetic, and the bits of constants
  std::uint32_t base_crc;     // JournalOptions::base_crc
  std::uint32_t hash_every;   // JournalOptions::hash_every
};

/// Identifies a state of a training.
struct JournalPoint {
  std::uint32_t number;  // of a start; otherwise 0
  std::uint32_t crc;     // of the bytes of Trainer::State
  std::uint64_t steps;   // of the optimizer
};

/// A sequence that a journal stores byte by byte, or that a replay loads by number. For a journal, all three
/// own their numbers: a view is a compile error.
template <class Input, class Target, class Mask = NoMask>
struct JournaledSequence {
  Input x;        // of the model
  Target target;  // of the loss
  Mask mask;      // of the sequence
};

/// An entry from a journal. `body` points into the journal.
struct JournalEntry {
  JournalEvent event;  // of this entry
  std::span<const std::byte> body;
  std::size_t at;      // its first byte in the journal
  std::size_t behind;  // the first byte after it

  /// The body as one record; false if the size differs.
  template <class Record>
  [[nodiscard]] bool read(Record& record) const {
    if (body.size() != sizeof record) return false;
    std::memcpy(static_cast<void*>(&record), body.data(), sizeof record);
    return true;
  }
};

/// Reads a journal from memory, entry by entry, and checks the CRC of each.
class JournalReader {
 public:
  /// Reads `bytes`, which must outlive it.
  explicit JournalReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Reads the next entry. Returns kNothingStored after the last one, and kUnreadable if bytes at entry.at
  /// are damaged and valid entries follow. Skips entries that a power cut interrupted.
  Status next(JournalEntry& entry) {
    if (read_at(at_, entry)) {
      at_ = entry.behind;
      return Status::kOk;
    }
    for (std::size_t at = at_ + 1; at < bytes_.size(); ++at) {
      if (!read_at(at, entry)) continue;
      if (entry.event != JournalEvent::kSession) {
        entry.at = at_;
        return Status::kUnreadable;
      }
      at_ = entry.behind;
      return Status::kOk;
    }
    return Status::kNothingStored;
  }
  /// The number of bytes after the last complete entry, without trailing erased bytes: the rest of an
  /// interrupted entry. Call it once next() has returned kNothingStored.
  [[nodiscard]] std::size_t rest() const {
    std::size_t end = bytes_.size();
    while (end > at_ && (bytes_[end - 1] == std::byte{0x00} || bytes_[end - 1] == std::byte{0xFF})) --end;
    return end - at_;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint32_t);

  [[nodiscard]] std::uint32_t word_at(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, kWord);
    return value;
  }
  bool read_at(std::size_t at, JournalEntry& entry) const {
    if (at > bytes_.size() || bytes_.size() - at < 2 * kWord) return false;
    const std::uint32_t head = word_at(at), event = head & 31u, unit = 1u << (head >> 5 & 7u);
    const std::size_t size = head >> 8, whole = (size + 2 * kWord + unit - 1) / unit * unit;
    if (event == 0 || event > kLastJournalEvent || whole > bytes_.size() - at) return false;
    const bool first = event == static_cast<std::uint32_t>(JournalEvent::kSession);
    if (!first && at < kWord) return false;
    const std::uint32_t before = first ? 0 : word_at(at - kWord);
    if (crc32(bytes_.data() + at, whole - kWord, before) != word_at(at + whole - kWord)) return false;
    entry = {static_cast<JournalEvent>(event), bytes_.subspan(at + kWord, size), at, at + whole};
    return true;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;  // the end of the last entry
};

}  // namespace ATTUNE_NAMESPACE
