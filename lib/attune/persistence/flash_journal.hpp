// A training journal in flash, as the sink of a TrainingJournal. It survives resets and continues after them.
//
//   attune::FlashJournal log(flash);              // of a FlashMemory (flash_store.hpp) of its own
//   status = log.open();
//   attune::TrainingJournal journal(trainer, log);
//   …
//   log.write_to(sink);                           // all of it, for a PC
//
// Every unit is programmed once, in order, after it was read as erased, and read back; one of erased bytes is
// only read. A power cut may leave a unit neither erased nor programmed; open() skips the rest of its entry.
// open() erases only flash without a single entry: entries without the beginning of their session are
// reported and left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/flash_memory.hpp>
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

  static_assert(
      detail::Holds<(kProgramUnit >= 1 && kProgramUnit <= 32 && (kProgramUnit & (kProgramUnit - 1)) == 0)>,
      "attune::FlashJournal: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes");
  static_assert(detail::Holds<(Flash::kPageSize % kProgramUnit == 0)>,
                "attune::FlashJournal: Flash::kPageSize must be a multiple of the program unit");
  static_assert(detail::Holds<(std::uint64_t{Flash::kPageSize} * Flash::kPages <= 0xFFFF'FFFFu)>,
                "attune::FlashJournal: the flash must be at most 4 GiB; give the journal a part of it");

  /// A journal in `flash`, which must outlive it. Call open() first.
  constexpr explicit FlashJournal(Flash& flash) : flash_(flash) {}

  /// Finds the end of the stored journal, and erases nothing that has an entry. Without an entry on any page
  /// it erases all of them. kUnreadable: the first entry that can be read is not the beginning of a session.
  /// Bits are damaged, or a power cut has hit clear(). Then stranded_entries() counts the entries, write_to()
  /// sends them, and clear() begins a new journal. Otherwise returns Flash's status.
  Status open() {
    filled_ = stranded_ = 0;
    std::uint32_t at = 0;
    JournalEvent event = kNone;
    bool is_used = false;
    for (int reads = 0; reads < detail::kFlashReads && event != JournalEvent::kSession; ++reads) {
      at = 0;
      if (const Status found = find_entry(at, event); found != Status::kOk) return found;
      is_used = is_used || event != kNone;
    }
    if (!is_used) return clear();
    if (const Status found = find_end(); found != Status::kOk) return found;
    if (event == JournalEvent::kSession) return skip_interrupted(at);
    do {  // the first one may read differently by now
      ++stranded_;
      if (const Status found = find_entry(at, event); found != Status::kOk) return found;
    } while (event != kNone);
    return Status::kUnreadable;
  }
  /// Erases the journal, the first page first. After a power cut, open() finds the entries of the other
  /// pages.
  Status clear() {
    filled_ = stranded_ = 0;
    end_ = kCapacity;
    for (std::uint32_t page = 0; page < Flash::kPages; ++page) {
      if (const Status erased = flash_.erase(page * Flash::kPageSize); erased != Status::kOk) return erased;
      if (const Status synced = flash_.sync(); synced != Status::kOk) return synced;
    }
    end_ = 0;
    return Status::kOk;
  }
  /// After kUnreadable of open(): the number of complete entries of at most 252 bytes, which clear() erases.
  /// Otherwise 0.
  [[nodiscard]] std::uint32_t stranded_entries() const { return stranded_; }
  /// Writes the next bytes, for TrainingJournal. kJournalFull: no room for them. kNotProgrammed: bits are
  /// stuck. kNotErased: the next unit is in use; it stays. Otherwise returns Flash's status.
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
  static constexpr JournalEvent kNone{};
  static constexpr std::uint32_t kWord = sizeof(std::uint32_t);
  static constexpr std::uint32_t kSessionSize =
      (sizeof(JournalSession) + 2 * kWord + kProgramUnit - 1) / kProgramUnit * kProgramUnit;
  static_assert(detail::Holds<(kSessionSize <= kCapacity)>,
                "attune::FlashJournal: give the journal more pages");

  /// Whether a unit has been programmed; a power cut may leave one that reads differently each time.
  Status find_use(std::uint32_t at, int reads, bool& is_used) {
    is_used = false;
    for (int i = 0; i < reads && !is_used; ++i) {
      unsigned char unit[kProgramUnit];
      const Status read = flash_.read(at, unit, kProgramUnit);
      if (read != Status::kOk && read != Status::kUnreadable) return read;
      is_used = read == Status::kUnreadable || !detail::is_erased<Flash>(unit, kProgramUnit);
    }
    return Status::kOk;
  }
  /// The end of the used units, and one more, which a power cut may have hit. Those behind it are read more
  /// often.
  Status find_end() {
    bool is_used = false;
    for (end_ = kCapacity; end_ > 0; end_ -= kProgramUnit) {
      if (const Status found = find_use(end_ - kProgramUnit, 1, is_used); found != Status::kOk) return found;
      if (is_used) break;
    }
    constexpr std::uint32_t kDoubtful = 4;
    for (std::uint32_t at = end_; at < kCapacity && at - end_ < kDoubtful * kProgramUnit;
         at += kProgramUnit) {
      if (const Status found = find_use(at, detail::kFlashReads, is_used); found != Status::kOk) return found;
      if (is_used) end_ = at + kProgramUnit;
    }
    if (end_ < kCapacity) end_ += kProgramUnit;
    return Status::kOk;
  }

  /// Moves the end behind an entry that a power cut has interrupted. Its last units may look erased: units of
  /// erased bytes, and the unit that the cut has hit. `at` is the end of the first entry.
  Status skip_interrupted(std::uint32_t at) {
    std::uint32_t last = at;
    for (JournalEvent event{};; last = at) {
      if (const Status found = find_entry(at, event); found != Status::kOk) return found;
      if (event == kNone) break;
    }
    while (last < end_ && kCapacity - last >= 2 * kWord) {  // entries of any size, by their heads
      std::uint32_t head = 0;
      const Status read = flash_.read(last, &head, kWord);
      if (read != Status::kOk && read != Status::kUnreadable) return read;
      const detail::JournalHead fields(read == Status::kOk ? head : 0);
      const bool is_head =
          fields.is_plausible() && fields.unit() == kProgramUnit && fields.whole() <= kCapacity - last;
      last += is_head ? static_cast<std::uint32_t>(fields.whole()) : kProgramUnit;
    }
    end_ = detail::larger(end_, last);
    return Status::kOk;
  }
  /// Finds the first complete entry of at most 252 bytes from `at` on, and goes behind it; kNone without one.
  /// The first place is read kFlashReads times.
  Status find_entry(std::uint32_t& at, JournalEvent& event) {
    for (int reads = at == 0 ? detail::kFlashReads : 1; at < kCapacity; at += kProgramUnit, reads = 1) {
      for (; reads > 0; --reads) {
        std::uint32_t size = 0;
        const Status read = read_entry(at, event, size);
        if (read != Status::kOk && read != Status::kUnreadable && read != Status::kNothingStored) return read;
        if (read != Status::kOk) continue;
        at += size;
        return Status::kOk;
      }
    }
    event = kNone;
    return Status::kOk;
  }
  /// Whether there is one at `at`: kOk, kNothingStored, or Flash's status.
  Status read_entry(std::uint32_t at, JournalEvent& event, std::uint32_t& size) {
    std::uint32_t head = 0, before = 0, stored = 0;
    if (kCapacity - at < 2 * kWord) return Status::kNothingStored;
    if (const Status read = flash_.read(at, &head, kWord); read != Status::kOk) return read;
    const detail::JournalHead fields(head);
    size = static_cast<std::uint32_t>(fields.whole());
    if (!fields.is_small() || fields.unit() != kProgramUnit || size > kCapacity - at)
      return Status::kNothingStored;
    event = fields.event();
    if (event != JournalEvent::kSession) {
      if (at < kWord) return Status::kNothingStored;
      if (const Status read = flash_.read(at - kWord, &before, kWord); read != Status::kOk) return read;
    }
    std::uint32_t crc = before;
    for (std::uint32_t done = 0, bytes; done < size - kWord; done += bytes) {
      unsigned char chunk[16];
      bytes = detail::smaller(size - kWord - done, std::uint32_t{sizeof chunk});
      if (const Status read = flash_.read(at + done, chunk, bytes); read != Status::kOk) return read;
      crc = crc32(chunk, bytes, crc);
    }
    if (const Status read = flash_.read(at + size - kWord, &stored, kWord); read != Status::kOk) return read;
    return crc == stored ? Status::kOk : Status::kNothingStored;
  }
  Status program() {
    if (end_ >= kCapacity) return Status::kJournalFull;
    const std::uint32_t at = end_;
    end_ += kProgramUnit;
    const bool is_blank = detail::is_erased<Flash>(unit_, kProgramUnit);
    Status done = Status::kOk;
    if (!is_blank) {  // programmed, a blank one could not be told from a free one after a reset
      done = detail::program_unit(flash_, at, unit_);
      if (done == Status::kOk) done = flash_.sync();
    }
    if (done != Status::kOk) return done;
    unsigned char seen[kProgramUnit];
    done = flash_.read(at, seen, kProgramUnit);
    if (done == Status::kOk && std::memcmp(seen, unit_, kProgramUnit) == 0) return Status::kOk;
    if (done != Status::kOk && done != Status::kUnreadable) return done;
    return is_blank ? Status::kNotErased : Status::kNotProgrammed;
  }

  Flash& flash_;
  std::uint32_t end_ = kCapacity;  // of the used units
  std::uint32_t filled_ = 0;       // bytes in unit_
  std::uint32_t stranded_ = 0;     // entries
  unsigned char unit_[kProgramUnit] = {};
};

}  // namespace ATTUNE_NAMESPACE
