// Saving into a slot and loading from one, in slices: at most 64 bytes, one program unit or one page each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <attune/core/status.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/flash_memory.hpp>
#include <attune/persistence/slot.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The bytes of a record in RAM.
template <class Byte>
struct SlotPart {
  Byte* bytes;
  std::uint32_t size;
};

/// Calls move(bytes of a record, place among the `count` bytes, number of bytes) for each record that has
/// some of the `count` bytes at `at` of the body.
template <class Flash, class Byte, class Move>
void for_each_part(std::span<const SlotPart<Byte>> parts, std::uint32_t at, std::uint32_t count,
                   const Move& move) {
  std::uint32_t begin = 0;
  for (const SlotPart<Byte>& part : parts) {
    const std::uint32_t first = larger(at, begin), end = smaller(at + count, begin + part.size);
    if (first < end) move(part.bytes + (first - begin), first - at, end - first);
    begin += SlotLayout<Flash>::up_to_whole(part.size, SlotLayout<Flash>::kUnit);
  }
}

/// A save. Finds the states, erases the slot that is worth least, programs the body, compares it with the
/// records, programs the head and the mark, and reads each back.
template <class Flash, SlotTypes types>
class SlotSave {
  using Layout = SlotLayout<Flash>;
  static constexpr bool kMark = Layout::has_mark(types.size);
  static constexpr auto kSlots = types.slots;
  static constexpr std::uint32_t kUnit = Layout::kUnit, kPageSize = Layout::kPageSize;
  static constexpr int kSurveys = 4;  // of flash that reads differently each time

 public:
  using Parts = std::span<const SlotPart<const unsigned char>>;

  /// `failures` counts the saves that failed since the last successful one.
  explicit SlotSave(std::uint32_t failures) : failures_(failures) { survey_.begin(0, Layout::kPages); }

  /// Does a slice. kUnderWay: there is more. `check` answers a Status before the head is programmed; unless
  /// it is kOk, the save ends with it.
  template <class Check>
  Status advance(Flash& flash, Parts parts, const Check& check) {
    switch (stage_) {
      case Stage::kSurvey:
        return survey(flash);
      case Stage::kJudge:
        return judge(flash);
      case Stage::kErase:
        return erase(flash);
      case Stage::kBody:
        return program_body(flash, parts);
      case Stage::kCompare:
        return compare(flash, parts, check);
      case Stage::kHead:
        return program_head(flash);
      case Stage::kVerify:
        return verify_head(flash);
      default:
        return program_mark(flash);
    }
  }

 private:
  enum class Stage : std::uint8_t {
    kSurvey = 0,   // all pages
    kJudge = 1,    // the slot that is about to be erased
    kErase = 2,    // its pages
    kBody = 3,     // units of the records
    kCompare = 4,  // of flash with the records
    kHead = 5,     // its units
    kVerify = 6,   // the head
    kMark = 7,     // that the state is complete
    kDone = 8,
  };

  Status next(Stage stage) {
    stage_ = stage;
    at_ = 0;
    return stage == Stage::kDone ? Status::kOk : Status::kUnderWay;
  }
  [[nodiscard]] std::uint32_t first_byte() const { return page_ * kPageSize; }

  Status survey(Flash& flash) {
    if (const Status status = survey_.advance(flash); status != Status::kOk) return status;
    best_ = survey_.best();
    newest_ = survey_.newest();
    page_ = target() * types.pages;
    // The newest complete state cannot be read now. It is erased only by a save after this report.
    if (newest_.unreadable && newest_.touches(page_, types.pages) && failures_ == 0)
      return Status::kUnreadable;
    survey_.begin(page_, page_ + types.pages);
    return next(Stage::kJudge);
  }
  /// The slot that is worth least, and after failures another one. It does not touch the best state, unless a
  /// state of other types is in every slot.
  [[nodiscard]] std::uint32_t target() const {
    const std::uint32_t first = smaller(best_.page / types.pages, kSlots),
                        end = smaller((best_.page + best_.pages - 1u) / types.pages + 1, kSlots),
                        touched = best_.pages == 0 ? 0 : end - first, count = types.slots - touched;
    if (count == 0) return failures_ % types.slots;
    const std::uint32_t victim = survey_.victim();
    // A number among the slots that the best state does not touch.
    std::uint32_t slot = victim == SlotWorth::kNoSlot ? first : victim < first ? victim : victim - touched;
    slot = (slot + failures_) % count;
    return slot < first ? slot : slot + touched;
  }
  /// Reads the slot again: it is erased only if no state in it is to be loaded rather than the best one, or
  /// is complete and newer than all.
  Status judge(Flash& flash) {
    if (const Status status = survey_.advance(flash); status != Status::kOk) return status;
    const SlotPlace &found = survey_.best(), &newest = survey_.newest();
    const bool is_newer =
        newest.pages != 0 && (newest_.pages == 0 || newer(newest.sequence, newest_.sequence));
    if (preferred(found, best_) || (is_newer && newest.complete)) return survey_again();
    if (is_newer) newest_ = newest;
    return next(Stage::kErase);
  }
  /// A mark that was read as begun stays so, however it reads from now on.
  Status survey_again() {
    if (++surveys_ == kSurveys) return Status::kUnreadable;
    survey_.begin(0, Layout::kPages, {}, survey_.best());
    return next(Stage::kSurvey);
  }

  /// The page with the head comes first. Another store may have saved into the slot since the last slice.
  Status erase(Flash& flash) {
    SlotHead found;
    const Status read = flash.read(first_byte(), &found, sizeof found);
    if (read != Status::kOk && read != Status::kUnreadable) return read;
    if (at_ == 0 && read == Status::kOk && found.is_valid() && kMark &&
        (newest_.pages == 0 || newer(found.sequence, newest_.sequence))) {
      SlotMark saved;
      const Status marked = read_mark(flash, Layout::mark_of(page_, types.size), saved);
      if (marked != Status::kOk) return marked;
      if (saved.begun) return survey_again();
    }
    if (at_ > 0 && !is_erased<Flash>(reinterpret_cast<const unsigned char*>(&found), sizeof found))
      return Status::kNotErased;
    if (at_ < types.pages) {
      const Status status = flash.erase(first_byte() + at_++ * kPageSize);
      return status == Status::kOk ? Status::kUnderWay : status;
    }
    if (const Status status = flash.sync(); status != Status::kOk) return status;
    crc_ = 0;
    return next(Stage::kBody);
  }

  /// The unit at_ of `size` bytes that are padded with the erased byte.
  template <std::uint32_t padded>
  Status program_bytes(Flash& flash, std::uint32_t at, const void* from, std::size_t size) {
    unsigned char bytes[padded];
    std::memset(bytes, Flash::kErased, padded);
    std::memcpy(bytes, from, size);
    const Status status = program_unit(flash, at + at_, bytes + at_);
    at_ += kUnit;
    return status == Status::kOk ? Status::kUnderWay : status;
  }

  Status program_body(Flash& flash, Parts parts) {
    if (at_ == types.size) {
      if (const Status status = flash.sync(); status != Status::kOk) return status;
      body_crc_ = crc_;
      crc_ = 0;
      same_ = true;
      return next(Stage::kCompare);
    }
    unsigned char unit[kUnit];
    std::memset(unit, Flash::kErased, kUnit);
    for_each_part<Flash>(parts, at_, kUnit,
                         [&](const unsigned char* bytes, std::uint32_t place, std::uint32_t count) {
                           std::memcpy(unit + place, bytes, count);
                         });
    crc_ = crc32(unit, kUnit, crc_);
    const Status status = program_unit(flash, first_byte() + Layout::kHeadSize + at_, unit);
    at_ += kUnit;
    return status == Status::kOk ? Status::kUnderWay : status;
  }

  /// A record that changed between two slices must not get a head: it would be half of each.
  template <class Check>
  Status compare(Flash& flash, Parts parts, const Check& check) {
    const auto compare_chunk = [&](const unsigned char* chunk, std::uint32_t at, std::uint32_t bytes) {
      for_each_part<Flash>(parts, at, bytes,
                           [&](const unsigned char* record, std::uint32_t place, std::uint32_t count) {
                             same_ = same_ && std::memcmp(chunk + place, record, count) == 0;
                           });
    };
    const Status read = read_body(flash, page_, types.size, at_, crc_, compare_chunk);
    if (read == Status::kUnreadable) return Status::kNotProgrammed;
    if (read != Status::kOk) return read;
    if (crc_ != body_crc_) return Status::kNotProgrammed;
    if (const Status status = check(); status != Status::kOk) return status;
    return same_ ? next(Stage::kHead) : Status::kChangedDuringSave;
  }

  [[nodiscard]] std::uint32_t sequence() const {
    return kMark ? next_marked(newest_.sequence) : newest_.sequence + 1;
  }
  [[nodiscard]] SlotHead head() const {
    SlotHead head{SlotHead::kMagic, types.fingerprint, types.size, sequence(), body_crc_, 0};
    head.crc = head.own_crc();
    return head;
  }
  Status program_head(Flash& flash) {
    if (at_ == 0 && kMark) {  // a worn mark must not be found behind a valid head
      unsigned char mark[Layout::kMarkSize];
      const Status status = flash.read(Layout::mark_of(page_, types.size), mark, sizeof mark);
      if (status != Status::kOk) return status == Status::kUnreadable ? Status::kNotErased : status;
      if (!is_erased<Flash>(mark, sizeof mark)) return Status::kNotErased;
    }
    if (at_ < Layout::kHeadSize) {
      const SlotHead whole = head();
      return program_bytes<Layout::kHeadSize>(flash, first_byte(), &whole, sizeof whole);
    }
    if (const Status status = flash.sync(); status != Status::kOk) return status;
    return next(Stage::kVerify);
  }
  Status verify_head(Flash& flash) {
    SlotHead found;
    const Status status = read_head(flash, page_, found);
    if (status == Status::kNothingStored || status == Status::kUnreadable) return Status::kNotProgrammed;
    if (status != Status::kOk) return status;
    const SlotHead whole = head();
    if (std::memcmp(&found, &whole, sizeof found) != 0) return Status::kNotProgrammed;
    return next(kMark ? Stage::kMark : Stage::kDone);
  }

  Status program_mark(Flash& flash) {
    const std::uint32_t at = Layout::mark_of(page_, types.size);
    if (at_ < Layout::kMarkSize) {
      const std::uint32_t numbers[2] = {sequence(), ~sequence()};
      return program_bytes<Layout::kMarkSize>(flash, at, &numbers, sizeof numbers);
    }
    if (const Status status = flash.sync(); status != Status::kOk) return status;
    SlotMark found;
    if (const Status status = read_mark(flash, at, found); status != Status::kOk) return status;
    return found.begun ? next(Stage::kDone) : Status::kNotProgrammed;
  }

  std::uint32_t failures_;
  SlotSurvey<Flash, types> survey_;
  SlotPlace best_, newest_;
  std::uint32_t page_ = 0, at_ = 0, crc_ = 0, body_crc_ = 0;
  int surveys_ = 0;
  Stage stage_ = Stage::kSurvey;
  bool same_ = true;  // so far, flash and records
};

/// A load: finds the state to load, copies it, and verifies the copy. A state that cannot be copied in
/// kFlashReads attempts is left out for an older one. If there is none, the records become zeros.
template <class Flash, SlotTypes types>
class SlotLoad {
  using Layout = SlotLayout<Flash>;

 public:
  using Parts = std::span<const SlotPart<unsigned char>>;

  SlotLoad() { survey_.begin(0, Layout::kPages); }

  /// Does a slice. kUnderWay: there is more.
  Status advance(Flash& flash, Parts parts) {
    switch (stage_) {
      case Stage::kSurvey:
        return survey(flash);
      case Stage::kHead:
        return begin_copy(flash);
      case Stage::kBody:
        return copy(flash, parts);
      default:
        return clear(parts);
    }
  }

 private:
  enum class Stage : std::uint8_t { kSurvey, kHead, kBody, kClear };
  static constexpr int kRounds = 2;

  Status survey(Flash& flash) {
    const Status status = survey_.advance(flash);
    if (status == Status::kUnderWay) return status;
    const bool is_found = status == Status::kOk && survey_.best().pages != 0;
    const bool is_tried = is_older_ || place_.pages != 0;  // the records may have parts of a state
    if (!is_found && is_tried)
      return status == Status::kOk && ++rounds_ < kRounds ? search_again() : give_up(status);
    if (!is_found) return status == Status::kOk ? Status::kNothingStored : status;
    is_older_ = is_tried;
    place_ = survey_.best();
    copies_ = 0;
    stage_ = Stage::kHead;
    return Status::kUnderWay;
  }
  /// A mark that reads differently each time may have hidden a state from the search for an older one.
  Status search_again() {
    is_older_ = true;
    place_ = {};
    survey_.begin(0, Layout::kPages);
    return Status::kUnderWay;
  }
  Status give_up(Status status) {
    result_ = status == Status::kOk ? Status::kUnreadable : status;
    at_ = 0;
    stage_ = Stage::kClear;
    return Status::kUnderWay;
  }
  Status begin_copy(Flash& flash) {
    SlotHead head;
    const Status status = read_head(flash, place_.page, head);
    const bool is_other = status == Status::kOk && head.fingerprint != types.fingerprint;
    if (is_other && !is_older_) return Status::kOtherState;
    if (status != Status::kOk || is_other || head.size != types.size || head.sequence != place_.sequence)
      return not_copied();
    body_crc_ = head.body_crc;
    at_ = crc_ = 0;
    stage_ = Stage::kBody;
    return Status::kUnderWay;
  }
  Status copy(Flash& flash, Parts parts) {
    const auto copy_chunk = [&](const unsigned char* chunk, std::uint32_t at, std::uint32_t bytes) {
      for_each_part<Flash>(parts, at, bytes,
                           [&](unsigned char* record, std::uint32_t place, std::uint32_t count) {
                             std::memcpy(record, chunk + place, count);
                           });
    };
    const Status read = read_body(flash, place_.page, types.size, at_, crc_, copy_chunk);
    if (read == Status::kUnderWay) return read;
    return read == Status::kOk && crc_ == body_crc_ ? Status::kOk : not_copied();
  }
  /// Copies again, or goes on to an older state.
  Status not_copied() {
    if (++copies_ < kFlashReads) {
      stage_ = Stage::kHead;
    } else {
      survey_.begin(0, Layout::kPages, place_);
      stage_ = Stage::kSurvey;
    }
    return Status::kUnderWay;
  }
  Status clear(Parts parts) {
    const std::uint32_t bytes = smaller(types.size - at_, Layout::kSlice);
    for_each_part<Flash>(parts, at_, bytes, [](unsigned char* record, std::uint32_t, std::uint32_t count) {
      std::memset(record, 0, count);
    });
    at_ += bytes;
    return at_ < types.size ? Status::kUnderWay : result_;
  }

  SlotSurvey<Flash, types> survey_;
  SlotPlace place_;
  std::uint32_t at_ = 0, crc_ = 0, body_crc_ = 0;
  int copies_ = 0, rounds_ = 0;
  Stage stage_ = Stage::kSurvey;
  Status result_ = Status::kOk;
  bool is_older_ = false;  // than a state that could not be copied
};

}  // namespace ATTUNE_NAMESPACE::detail
