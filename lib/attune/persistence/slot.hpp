// The slots of a FlashStore: their bytes, and the search for valid ones in slices.
//
//   SlotHead  in whole program units, padded with the erased byte
//   records   each in whole program units
//   mark      8 bytes in whole units: the sequence number and its complement
//
// The unit that a power cut hits may read differently each time. So a head alone does not prove that it is
// complete: it may be valid now and not later. The mark does, even if its own bits are unstable, because it
// is programmed after the head was read back. Half of its bits are programmed; it counts if half of those
// read as such. A state without it counts only if there is no complete one.
//
// Version 1.0 had no marks, and counted its sequence numbers up by one. A state that needs the mark has a
// number that ends in FFF1; all others are complete without it, as are states whose pages have no room for
// it. If head or records of a complete state cannot be read, its mark still has the number: no later state is
// numbered like it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <attune/core/status.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/flash_memory.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The head of a slot, before its records. All zeros and all ones are not valid heads.
struct SlotHead {
  static constexpr std::uint32_t kMagic = 0x31'54'54'41;  // ATT1
  std::uint32_t magic;
  std::uint32_t fingerprint;  // of the types of the records
  std::uint32_t size;         // bytes after the head, in whole units
  std::uint32_t sequence;     // increases with each save; wraps around
  std::uint32_t body_crc;
  std::uint32_t crc;  // of the words above

  [[nodiscard]] std::uint32_t own_crc() const {
    return crc32(reinterpret_cast<const unsigned char*>(this), offsetof(SlotHead, crc));
  }
  [[nodiscard]] bool is_valid() const { return magic == kMagic && crc == own_crc(); }
};

/// The place of a valid state; `pages` is 0 if there is none.
struct SlotPlace {
  std::uint32_t sequence = 0;
  std::uint16_t page = 0, pages = 0;
  bool complete = false;    // it has its mark, or needs none
  bool unreadable = false;  // but for that mark

  [[nodiscard]] bool touches(std::uint32_t first, std::uint32_t count) const {
    return page < first + count && first < std::uint32_t{page} + pages;
  }
};

/// The end of the sequence numbers of states that are complete only with their mark.
inline constexpr std::uint32_t kMarkedNumbers = 0xFFF1;
[[nodiscard]] constexpr bool needs_mark(std::uint32_t sequence) {
  return (sequence & 0xFFFF) == kMarkedNumbers;
}
/// The next such number.
[[nodiscard]] constexpr std::uint32_t next_marked(std::uint32_t sequence) {
  const std::uint32_t same = (sequence & 0xFFFF'0000u) | kMarkedNumbers;
  return same - sequence - 1 < 0x8000'0000u ? same : same + 0x1'0000u;
}

/// Whether sequence number a is newer than b; the numbers wrap around. They are less than 2^31 apart.
[[nodiscard]] constexpr bool newer(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}
/// Whether a state is to be loaded rather than another. A complete one first, the newest of them. If there is
/// none, the oldest: the save of a later one took it for complete, whatever its mark reads as now.
[[nodiscard]] constexpr bool preferred(const SlotPlace& a, const SlotPlace& b) {
  if (a.pages == 0 || b.pages == 0) return a.pages != 0;
  if (a.complete != b.complete) return a.complete;
  return a.complete ? newer(a.sequence, b.sequence) : newer(b.sequence, a.sequence);
}

/// A slot, and how little it is worth.
struct SlotWorth {
  // In the order in which slots are erased: nothing readable; the youngest incomplete state; the oldest
  // complete one, readable or not.
  enum class Content : std::uint8_t { kNothing, kIncomplete, kComplete };
  static constexpr std::uint32_t kNoSlot = ~0u;

  std::uint32_t slot = kNoSlot;
  std::uint32_t sequence = 0;
  Content content = Content::kNothing;

  /// Whether it is erased before another slot.
  [[nodiscard]] constexpr bool before(const SlotWorth& other) const {
    if (slot == kNoSlot || other.slot == kNoSlot) return slot != kNoSlot;
    if (content != other.content) return content < other.content;
    if (content == Content::kIncomplete) return newer(sequence, other.sequence);
    return content == Content::kComplete && newer(other.sequence, sequence);
  }
};

/// Fingerprint of the types of records, bytes of all of them, pages of a slot, slots.
struct SlotTypes {
  std::uint32_t fingerprint, size, pages, slots;
};

/// The size of a slot in one Flash.
template <class Flash>
struct SlotLayout {
  static constexpr std::uint32_t kUnit = Flash::kProgramUnit, kPageSize = Flash::kPageSize,
                                 kPages = Flash::kPages;
  /// Bytes that are read at once, and in a slice.
  static constexpr std::uint32_t kChunk = larger<std::uint32_t>(16, kUnit), kSlice = 64;

  static constexpr std::uint32_t up_to_whole(std::uint64_t bytes, std::uint32_t of) {
    return static_cast<std::uint32_t>((bytes + of - 1) / of * of);
  }
  static constexpr std::uint32_t kHeadSize = up_to_whole(sizeof(SlotHead), kUnit);
  static constexpr std::uint32_t kMarkSize = up_to_whole(2 * sizeof(std::uint32_t), kUnit);
  /// The pages of a head and `size` bytes of records.
  static constexpr std::uint32_t pages_of(std::uint32_t size) {
    return up_to_whole(std::uint64_t{kHeadSize} + size, kPageSize) / kPageSize;
  }
  /// Whether those pages have room for the mark.
  static constexpr bool has_mark(std::uint32_t size) {
    return std::uint64_t{kHeadSize} + size + kMarkSize <= std::uint64_t{pages_of(size)} * kPageSize;
  }
  /// The mark of a state at a page.
  static constexpr std::uint32_t mark_of(std::uint32_t page, std::uint32_t size) {
    return page * kPageSize + kHeadSize + size;
  }
};

/// Reads the head of a state that may begin at a page. kNothingStored: it is not valid.
template <class Flash>
[[gnu::noinline]] Status read_head(Flash& flash, std::uint32_t page, SlotHead& head) {
  using Layout = SlotLayout<Flash>;
  const Status status = flash.read(page * Layout::kPageSize, &head, sizeof head);
  if (status != Status::kOk) return status;
  const bool valid =
      head.is_valid() && head.size <= (Layout::kPages - page) * Layout::kPageSize - Layout::kHeadSize;
  return valid ? Status::kOk : Status::kNothingStored;
}

/// Reads a slice of `size` bytes behind a head, from `at` on, which advances: visit(bytes, at, count) gets it
/// in chunks, and `crc` goes on over them. kUnderWay: there is more. Otherwise returns Flash's status.
template <class Flash, class Visitor>
Status read_body(Flash& flash, std::uint32_t page, std::uint32_t size, std::uint32_t& at, std::uint32_t& crc,
                 const Visitor& visit) {
  using Layout = SlotLayout<Flash>;
  const std::uint32_t first = page * Layout::kPageSize + Layout::kHeadSize;
  for (std::uint32_t slice = 0; at < size && slice < Layout::kSlice;) {
    unsigned char chunk[Layout::kChunk];
    const std::uint32_t count = smaller(size - at, Layout::kChunk);
    if (const Status status = flash.read(first + at, chunk, count); status != Status::kOk) return status;
    visit(chunk, at, count);
    crc = crc32(chunk, count, crc);
    at += count;
    slice += count;
  }
  return at < size ? Status::kUnderWay : Status::kOk;
}

/// A mark as it was read.
struct SlotMark {
  bool begun = false;          // at least a quarter of its bits are programmed, or error correction gives up
  bool has_sequence = false;   // it is whole
  std::uint32_t sequence = 0;  // of the state
};
template <class Flash>
[[gnu::noinline]] Status read_mark(Flash& flash, std::uint32_t at, SlotMark& mark) {
  mark = {.begun = true};
  for (int reads = 0; reads < kFlashReads; ++reads) {
    std::uint32_t numbers[2];
    const Status status = flash.read(at, numbers, sizeof numbers);
    if (status == Status::kUnreadable) continue;
    if (status != Status::kOk) return status;
    constexpr std::uint32_t kErased = Flash::kErased * 0x0101'0101u;
    const int programmed = std::popcount(numbers[0] ^ kErased) + std::popcount(numbers[1] ^ kErased);
    mark = {programmed >= 16, numbers[0] == ~numbers[1], numbers[0]};
    return Status::kOk;
  }
  return Status::kOk;
}

/// Searches pages for valid states, in slices. States of other types may differ in size, so they can begin at
/// any page. A page without a valid state is read kFlashReads times.
template <class Flash, SlotTypes types>
class SlotSurvey {
  using Layout = SlotLayout<Flash>;

 public:
  /// Begins at page `first`; ends before page `end`. Ignores states that are not less preferred than
  /// `below`, if that is one. `known` is complete, if it was.
  void begin(std::uint32_t first, std::uint32_t end, const SlotPlace& below = {}, SlotPlace known = {}) {
    *this = {};
    page_ = first;
    end_ = end;
    below_ = below;
    known_ = known;
  }
  /// Does a slice. kUnderWay: there is more. kOk: done. kUnreadable: states have sequence numbers 2^31 or
  /// more apart, and none is the newest. Otherwise returns Flash's status.
  [[gnu::noinline]] Status advance(Flash& flash) {
    if (page_ >= end_) return Status::kOk;
    if (!in_body_) return start_state(flash);
    const Status status =
        read_body(flash, page_, size_, at_, crc_, [](const unsigned char*, std::uint32_t, std::uint32_t) {});
    if (status == Status::kUnderWay) return status;
    return status == Status::kOk ? end_state(flash) : not_valid(flash, status);
  }
  /// The state to load; the one with the newest sequence number, which may be incomplete or unreadable.
  [[nodiscard]] const SlotPlace& best() const { return best_; }
  [[nodiscard]] const SlotPlace& newest() const { return newest_; }
  /// The slot to erase first that does not touch the best state; kNoSlot if that is in all slots.
  [[nodiscard]] std::uint32_t victim() const {
    SlotWorth victim;
    for (SlotWorth worth : {victims_[0], victims_[1], current_}) {
      if (worth.slot == SlotWorth::kNoSlot || best_.touches(worth.slot * types.pages, types.pages)) continue;
      if (worth.before(victim)) victim = worth;
    }
    return victim.slot;
  }

 private:
  Status start_state(Flash& flash) {
    SlotHead head;
    if (const Status status = read_head(flash, page_, head); status != Status::kOk)
      return not_valid(flash, status);
    in_body_ = has_head_ = true;
    at_ = 0;
    size_ = head.size;
    sequence_ = head.sequence;
    body_crc_ = head.body_crc;
    crc_ = 0;
    return Status::kUnderWay;
  }
  Status end_state(Flash& flash) {
    if (crc_ != body_crc_) return not_valid(flash, Status::kNothingStored);
    const auto pages = static_cast<std::uint16_t>(Layout::pages_of(size_));
    SlotPlace place{sequence_, static_cast<std::uint16_t>(page_), pages, true};
    if (Layout::has_mark(size_) && needs_mark(sequence_)) {
      SlotMark mark;
      const Status status = read_mark(flash, Layout::mark_of(page_, size_), mark);
      if (status != Status::kOk) return status;
      place.complete =
          mark.begun || (known_.complete && known_.page == page_ && known_.sequence == sequence_);
    }
    if (!add(place)) return Status::kUnreadable;
    note(page_, pages, place.complete ? SlotWorth::Content::kComplete : SlotWorth::Content::kIncomplete,
         place.sequence);
    if (preferred(place, best_) && (below_.pages == 0 || preferred(below_, place))) best_ = place;
    return next_page(pages);
  }
  // Makes a state the newest one if it is. False if the numbers cannot be compared.
  bool add(const SlotPlace& place) {
    if (!in_window(place.sequence)) return false;
    if (newest_.pages == 0 || newer(place.sequence, newest_.sequence)) newest_ = place;
    return true;
  }
  // Whether all numbers so far are in a window of less than 2^31.
  bool in_window(std::uint32_t sequence) {
    constexpr std::uint32_t kHalf = 0x8000'0000u;
    if (newest_.pages == 0) {
      oldest_ = sequence;
      return true;
    }
    if (sequence - oldest_ < kHalf) return true;
    if (newest_.sequence - sequence >= kHalf) return false;
    oldest_ = sequence;
    return true;
  }
  Status not_valid(Flash& flash, Status status) {
    if (status != Status::kNothingStored && status != Status::kUnreadable) return status;
    in_body_ = false;
    if (++reads_ < kFlashReads) return Status::kUnderWay;
    if (Layout::has_mark(types.size) && page_ % types.pages == 0 && page_ / types.pages < types.slots) {
      SlotMark mark;
      if (const Status read = read_mark(flash, Layout::mark_of(page_, types.size), mark); read != Status::kOk)
        return read;
      // Its number, from the mark or from a head in front of damaged records.
      const SlotPlace place{mark.has_sequence ? mark.sequence : sequence_, static_cast<std::uint16_t>(page_),
                            static_cast<std::uint16_t>(types.pages), mark.begun, mark.begun};
      const bool is_numbered = mark.has_sequence || has_head_;
      if (is_numbered && !add(place)) return Status::kUnreadable;
      if (is_numbered && mark.begun) note(page_, 1, SlotWorth::Content::kComplete, place.sequence);
    }
    note(page_, 1, SlotWorth::Content::kNothing, 0);
    return next_page(1);
  }
  // The most valuable content of each slot counts. A state of other types may be in several slots.
  void note(std::uint32_t first, std::uint32_t pages, SlotWorth::Content content, std::uint32_t sequence) {
    for (std::uint32_t slot = first / types.pages; slot * types.pages < first + pages && slot < types.slots;
         ++slot) {
      if (slot != current_.slot) {
        end_slot();
        current_ = {slot, 0, SlotWorth::Content::kNothing};
      }
      const SlotWorth worth{slot, sequence, content};
      if (current_.before(worth)) current_ = worth;
    }
  }
  // Remembers the two slots to erase first: one of them may have the best state.
  void end_slot() {
    if (current_.before(victims_[0])) std::swap(current_, victims_[0]);
    if (current_.before(victims_[1])) std::swap(current_, victims_[1]);
  }
  Status next_page(std::uint32_t pages) {
    page_ += pages;
    reads_ = 0;
    in_body_ = has_head_ = false;
    return Status::kUnderWay;
  }

  SlotPlace best_, newest_, below_, known_;
  SlotWorth victims_[2], current_;
  std::uint32_t page_ = 0, end_ = 0;
  std::uint32_t oldest_ = 0;  // sequence number
  // Of the state at page_:
  std::uint32_t at_ = 0, size_ = 0, sequence_ = 0, body_crc_ = 0, crc_ = 0;
  int reads_ = 0;
  bool in_body_ = false, has_head_ = false;  // has_head_: in one of the reads
};

}  // namespace ATTUNE_NAMESPACE::detail
