// A training journal in flash, as the sink of a TrainingJournal. It survives resets and continues after them.
//
//   attune::FlashJournal log(flash);              // of a FlashMemory (flash_store.hpp) of its own
//   status = log.open();
//   attune::TrainingJournal journal(trainer, log);
//   …
//   log.write_to(sink);                           // all of it, for a PC
//
// Every unit is programmed once, in order, and read back. A power cut may leave a unit neither erased nor
// programmed; open() skips it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>
#include <attune/persistence/flash_store.hpp>
#include <attune/persistence/journal_entry.hpp>

namespace ATTUNE_NAMESPACE {

/// A journal in all pages of `Flash`, which it does not share.
template <class Flash>
class FlashJournal {
  static_assert(FlashMemory<Flash>,
                "attune::FlashJournal: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, "
                "program, erase and sync, which return a Status");

 public:
  /// Entries are a multiple of this many bytes.
  static constexpr std::uint32_t kProgramUnit = Flash::kProgramUnit;
  /// The capacity in bytes.
  static constexpr std::uint32_t kCapacity = Flash::kPageSize * Flash::kPages;

  /// A journal in `flash`, which must outlive it. Call open() first.
  constexpr explicit FlashJournal(Flash& flash) : flash_(flash) {}

  /// Finds the end of the stored journal. Erases all pages if there is none, or if erasing was cut off.
  Status open() {
    bool is_there = false;
    if (const Status read = find_session(is_there); read != Status::kOk) return read;
    if (!is_there) return clear();
    filled_ = 0;
    for (end_ = kCapacity; end_ > 0; end_ -= kProgramUnit) {
      unsigned char unit[kProgramUnit];
      const Status read = flash_.read(end_ - kProgramUnit, unit, kProgramUnit);
      if (read != Status::kOk && read != Status::kUnreadable) return read;
      if (read == Status::kUnreadable || !is_erased(unit)) break;
    }
    end_ = (std::min)(end_ + kProgramUnit, kCapacity);  // after a unit that a power cut may have damaged
    return Status::kOk;
  }
  /// Erases the journal, the first page first: after a power cut, open() finds no journal and erases again.
  Status clear() {
    filled_ = 0;
    end_ = kCapacity;
    for (std::uint32_t page = 0; page < Flash::kPages; ++page) {
      if (const Status erased = flash_.erase(page * Flash::kPageSize); erased != Status::kOk) return erased;
      if (const Status synced = flash_.sync(); synced != Status::kOk) return synced;
    }
    end_ = 0;
    return Status::kOk;
  }
  /// Writes the next bytes, for TrainingJournal. kJournalFull: no room for them. kNotProgrammed: bits are
  /// stuck, or a page was not erased. Otherwise returns Flash's status.
  Status operator()(const char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      unit_[filled_++] = static_cast<unsigned char>(bytes[i]);
      if (filled_ < kProgramUnit) continue;
      filled_ = 0;
      if (const Status written = program(); written != Status::kOk) return written;
    }
    return Status::kOk;
  }
  /// The size of the journal so far, in bytes.
  [[nodiscard]] std::uint32_t size() const { return end_; }
  /// Calls sink(const char* bytes, std::size_t count) with the whole journal, one unit at a time. Units that
  /// a power cut made unreadable are zeros.
  template <class Sink>
  Status write_to(Sink&& sink) {
    for (std::uint32_t at = 0; at < end_; at += kProgramUnit) {
      unsigned char unit[kProgramUnit];
      const Status read = flash_.read(at, unit, kProgramUnit);
      if (read == Status::kUnreadable) std::memset(unit, 0, kProgramUnit);
      if (read != Status::kOk && read != Status::kUnreadable) return read;
      sink(reinterpret_cast<const char*>(unit), std::size_t{kProgramUnit});
    }
    return Status::kOk;
  }

 private:
  static bool is_erased(const unsigned char* unit) {
    return std::all_of(unit, unit + kProgramUnit, [](unsigned char byte) { return byte == Flash::kErased; });
  }
  /// Whether the first entry is complete: it is written after all pages have been erased.
  Status find_session(bool& is_there) {
    constexpr std::uint32_t kSize =
        (sizeof(JournalSession) + 2 * sizeof(std::uint32_t) + kProgramUnit - 1) / kProgramUnit * kProgramUnit;
    static_assert(kSize <= kCapacity, "attune::FlashJournal: give the journal more pages");
    std::byte bytes[kSize];
    const Status read = flash_.read(0, bytes, kSize);
    JournalEntry entry;
    is_there = read == Status::kOk && JournalReader({bytes, kSize}).next(entry) == Status::kOk &&
               entry.event == JournalEvent::kSession;
    return read == Status::kUnreadable ? Status::kOk : read;
  }
  Status program() {
    if (end_ >= kCapacity) return Status::kJournalFull;
    const std::uint32_t at = end_;
    end_ += kProgramUnit;
    Status done = flash_.program(at, unit_, kProgramUnit);
    if (done == Status::kOk) done = flash_.sync();
    if (done != Status::kOk) return done;
    unsigned char seen[kProgramUnit];
    done = flash_.read(at, seen, kProgramUnit);
    const bool same = done == Status::kOk && std::memcmp(seen, unit_, kProgramUnit) == 0;
    return same                                                 ? Status::kOk
           : done == Status::kOk || done == Status::kUnreadable ? Status::kNotProgrammed
                                                                : done;
  }

  Flash& flash_;
  std::uint32_t end_ = kCapacity;  // of the used units
  std::uint32_t filled_ = 0;       // bytes in unit_
  unsigned char unit_[kProgramUnit] = {};
};

}  // namespace ATTUNE_NAMESPACE
