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
#include <attune/kernels/algorithm.hpp>
#include <attune/persistence/crc32.hpp>

namespace ATTUNE_NAMESPACE {

/// The version of the format that this library writes.
inline constexpr std::uint32_t kJournalVersion = 1;

/// Events of a training, in entries of a journal. Parentheses name the record of each.
enum class JournalEvent : std::uint8_t {
  kSession = 1,        // the device started (JournalSession)
  kStarted = 2,        // the program started the trainer with `number` (JournalPoint)
  kResumed = 3,        // the trainer resumed from a saved state (JournalPoint)
  kSequence = 4,       // a sequence was accumulated (its number, 4 bytes)
  kSequenceBytes = 5,  // a sequence was accumulated (the bytes of input, target and mask)
  kUpdated = 6,        // an update or a discarded batch (Status as 4 bytes, options, clipping if used)
  kDiscarded = 7,      // the batch was discarded (no record)
  kSaving = 8,         // the state is about to be saved (JournalPoint)
  kHash = 9,           // hash of the current parameters (hash_bits, 4 bytes)
  kLoaded = 10,        // the state changed elsewhere, such as by load() (the bytes of Trainer::State)
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

namespace detail {

/// A trainer that adds up batches; one without gradients takes whole steps.
template <class Trainer>
concept Accumulates = requires(Trainer& trainer) {
  trainer.discard();
};

/// The first word of an entry.
class JournalHead {
 public:
  constexpr explicit JournalHead(std::uint32_t first_word) : word_(first_word) {}

  [[nodiscard]] constexpr JournalEvent event() const { return static_cast<JournalEvent>(word_ & 31u); }
  [[nodiscard]] constexpr std::uint32_t unit() const { return 1u << (word_ >> 5 & 7u); }
  /// Bytes of the body.
  [[nodiscard]] constexpr std::size_t size() const { return word_ >> 8; }
  /// Bytes of the entry.
  [[nodiscard]] constexpr std::size_t whole() const {
    return (size() + 2 * sizeof word_ + unit() - 1) / unit() * unit();
  }
  [[nodiscard]] constexpr bool is_event() const { return (word_ & 31u) - 1 < kLastJournalEvent; }
  /// Whether such an entry exists, as far as events have a size.
  [[nodiscard]] constexpr bool is_plausible() const {
    if (!is_event() || unit() > 32) return false;
    switch (event()) {
      case JournalEvent::kStarted:
      case JournalEvent::kResumed:
      case JournalEvent::kSaving:
        return size() == sizeof(JournalPoint);
      case JournalEvent::kSequence:
      case JournalEvent::kHash:
        return size() == sizeof(std::uint32_t);
      case JournalEvent::kDiscarded:
        return size() == 0;
      case JournalEvent::kSession:  // a later version's may be larger
        return size() >= sizeof(JournalSession) && size() <= kSmall;
      case JournalEvent::kUpdated:
        return size() <= kSmall;
      default:
        return true;
    }
  }
  /// Whether it is plausible and its body has at most 252 bytes, as of all but sequences and states.
  [[nodiscard]] constexpr bool is_small() const { return is_plausible() && size() <= kSmall; }

 private:
  static constexpr std::size_t kSmall = 252;
  std::uint32_t word_;
};

/// Finds the first complete entry behind damaged bytes. Visits each byte once: a
/// candidate waits until the bytes of its CRC come, and is compared with the CRC of all bytes so far.
class EntrySearch {
 public:
  struct Found {
    std::size_t at, end;  // both 0: there is none
  };

  /// Searches from `from` on; `visited` counts bytes.
  Found find(std::span<const std::byte> bytes, std::size_t from, std::uint64_t& visited) {
    count_ = 0;
    from_ = from;
    std::uint32_t all = 0;  // the register of all bytes from `from` on
    for (std::size_t at = from; at < bytes.size(); ++at, ++visited) {
      if (count_ > 0 && waiting_[0].crc_at == at) {
        if (const Found found = compare(bytes, at, all); found.end != 0) return found;
      }
      add(bytes, at, all);
      const auto index = static_cast<unsigned char>(bytes[at]);
      all ^= index;
      for (int shift = 0; shift < 8; shift += kCrcStep)
        all = all >> kCrcStep ^ kCrcTable.words[all % (1u << kCrcStep)];
    }
    return {};
  }

 private:
  static constexpr int kWaiting = 64;
  static constexpr std::size_t kWord = sizeof(std::uint32_t);
  struct Candidate {
    std::size_t at, crc_at;
    std::uint32_t difference;  // between its own register and the one of all bytes, at its start
  };

  static std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, kWord);
    return value;
  }
  // The longest candidates give way if there are too many, but never the one at from_.
  void add(std::span<const std::byte> bytes, std::size_t at, std::uint32_t all) {
    if (bytes.size() - at < 2 * kWord) return;
    const JournalHead head(word_at(bytes, at));
    const bool is_session = head.event() == JournalEvent::kSession;
    if (!head.is_plausible() || head.whole() > bytes.size() - at || (!is_session && at < kWord)) return;
    const std::uint32_t before = is_session ? 0 : word_at(bytes, at - kWord);
    const Candidate candidate{at, at + head.whole() - kWord, ~before ^ all};
    if (count_ == kWaiting) {
      const bool keeps_last = waiting_[kWaiting - 1].at == from_;
      const Candidate last = waiting_[kWaiting - 1];
      if (waiting_[kWaiting - 1 - keeps_last].crc_at <= candidate.crc_at) return;
      if (keeps_last) waiting_[kWaiting - 2] = last;
      --count_;
    }
    int place = count_++;
    for (; place > 0 && waiting_[place - 1].crc_at > candidate.crc_at; --place)
      waiting_[place] = waiting_[place - 1];
    waiting_[place] = candidate;
  }
  // Of those whose CRC is at `at`: the longest one that is complete.
  Found compare(std::span<const std::byte> bytes, std::size_t at, std::uint32_t all) {
    Found found{};
    int compared = 0;
    for (; compared < count_ && waiting_[compared].crc_at == at; ++compared) {
      const Candidate& candidate = waiting_[compared];
      const std::uint32_t own = crc_after_zeros(candidate.difference, at - candidate.at) ^ all;
      if (found.end == 0 && ~own == word_at(bytes, at)) found = {candidate.at, at + kWord};
    }
    count_ -= compared;
    for (int i = 0; i < count_; ++i) waiting_[i] = waiting_[i + compared];
    return found;
  }

  Candidate waiting_[kWaiting];  // in the order of crc_at
  int count_ = 0;
  std::size_t from_ = 0;
};

}  // namespace detail

/// Reads a journal from memory, entry by entry, and checks the CRC of each. Its time is linear in the number
/// of bytes, damaged or not.
class JournalReader {
 public:
  /// Reads `bytes`, which must outlive it.
  explicit JournalReader(std::span<const std::byte> bytes)
      : bytes_(bytes), attempts_(2 * std::uint64_t{bytes.size()}) {}

  /// Reads the next entry. Returns kNothingStored after the last one, and kUnreadable if bytes at entry.at
  /// are damaged and valid entries follow. Skips entries that a power cut interrupted. After damage, it may
  /// overlook an entry of more than 252 bytes, but none that is shorter.
  Status next(JournalEntry& entry) {
    if (read_at(at_, entry)) {
      at_ = entry.behind;
      return Status::kOk;
    }
    // An entry that was not read because attempts_ are used up is searched for like all others.
    const std::size_t from = attempts_ > 0 ? at_ + 1 : at_;
    const auto found = from < bytes_.size() ? detail::EntrySearch{}.find(bytes_, from, visited_)
                                            : detail::EntrySearch::Found{};
    if (found.end == 0) return Status::kNothingStored;
    const detail::JournalHead head(word_at(found.at));
    entry = {head.event(), bytes_.subspan(found.at + kWord, head.size()), found.at, found.end};
    if (found.at != at_ && entry.event != JournalEvent::kSession) {
      entry.at = at_;
      return Status::kUnreadable;
    }
    at_ = entry.behind;
    return Status::kOk;
  }
  /// The number of bytes after the last complete entry, without trailing erased bytes: the rest of an
  /// interrupted entry. Call it once next() has returned kNothingStored.
  [[nodiscard]] std::size_t rest() const {
    std::size_t end = bytes_.size();
    while (end > at_ && (bytes_[end - 1] == std::byte{0x00} || bytes_[end - 1] == std::byte{0xFF})) --end;
    return end - at_;
  }
  /// The bytes that were looked at so far, as often as they were: less than six times the journal's size.
  [[nodiscard]] std::uint64_t visited() const { return visited_; }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint32_t);

  [[nodiscard]] std::uint32_t word_at(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, kWord);
    return value;
  }
  bool read_at(std::size_t at, JournalEntry& entry) {
    if (at > bytes_.size() || bytes_.size() - at < 2 * kWord || attempts_ == 0) return false;
    const detail::JournalHead head(word_at(at));
    const std::size_t whole = head.whole();
    if (!head.is_event() || whole > bytes_.size() - at) return false;
    const bool first = head.event() == JournalEvent::kSession;
    if (!first && at < kWord) return false;
    const std::uint32_t before = first ? 0 : word_at(at - kWord);
    visited_ += whole;
    if (crc32(bytes_.data() + at, whole - kWord, before) != word_at(at + whole - kWord)) {
      attempts_ -= detail::smaller(attempts_, std::uint64_t{whole});
      return false;
    }
    entry = {head.event(), bytes_.subspan(at + kWord, head.size()), at, at + whole};
    return true;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t attempts_;  // bytes that may be read of entries that are not complete
  std::uint64_t visited_ = 0;
  std::size_t at_ = 0;  // the end of the last entry
};

}  // namespace ATTUNE_NAMESPACE
