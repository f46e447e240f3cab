// A state in flash that power cuts cannot break: after a cut at any time the old state is there, or the new
// one.
//
//   struct Settings { static constexpr std::uint32_t kFingerprint = 1; std::uint32_t utterances; char
//   name[12]; }; attune::FlashStore<BoardFlash, Trainer::State, Settings> store(flash); status =
//   trainer.resume([&](Trainer::State& state) { return store.load(state, settings); }); if (status !=
//   attune::Status::kOk) start_anew(); … status = store.save(trainer.state(), settings);
//
// What was stored is loaded into records of the same size and kFingerprintOf (core/fingerprint.hpp) alone. A
// Trainer::State tells models apart; bare parameters and structs without a kFingerprint are told by size.
//
// Flash is a type that says what the flash is, and moves bytes; `at` counts bytes from the beginning of what
// the store may use:
//
//   static constexpr std::uint32_t kPageSize;     // bytes that are erased together
//   static constexpr std::uint32_t kPages;        // of the store
//   static constexpr std::uint32_t kProgramUnit;  // 1 to 32 bytes that are programmed together
//   static constexpr unsigned char kErased;       // what erased flash reads, 0xFF or 0x00
//   attune::Status read(std::uint32_t at, void* to, std::size_t bytes);            // any place and number
//   attune::Status program(std::uint32_t at, const void* from, std::size_t bytes); // whole units; from: any
//   attune::Status erase(std::uint32_t at);       // one page
//   attune::Status sync();                        // returns when all before is in the flash
//
// read answers kUnreadable where the flash has bytes that its error correction gives up on, as a cut leaves
// them: that spoils the state there. Any other failure (kFlashFault, of a bus or a driver) ends the call.
//
// Whole pages make slots, as many as fit, used in turn. A slot is a head and behind it the records, each in
// whole units, filled up with the erased byte. A save erases the slot behind the newest state's, programs the
// records, then the head with its sequence number and CRCs, and reads all of it back. Nothing is programmed
// twice, nor before it was seen to be erased, so flash that may be written once (ECC rows) needs nothing
// else. Every call reads what is there: a FlashStore has no memory of the flash that could be wrong.
//
// Two slots are enough while what a cut left reads the same each time. A third one outlives bits that do not:
// a head that was programmed as the power went, and is valid today.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/persistence/crc32.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// What the comment at the top says of a flash.
template <class Flash>
concept FlashMemory = requires(Flash& flash, std::uint32_t at, void* to, const void* from,
                               std::size_t bytes) {
  { Flash::kPageSize + Flash::kPages + Flash::kProgramUnit } -> std::integral;
  { Flash::kErased } -> std::convertible_to<unsigned char>;
  { flash.read(at, to, bytes) } -> std::same_as<Status>;
  { flash.program(at, from, bytes) } -> std::same_as<Status>;
  { flash.erase(at) } -> std::same_as<Status>;
  { flash.sync() } -> std::same_as<Status>;
};

namespace detail {

template <class Record>
concept RefersElsewhere = std::is_pointer_v<Record> || std::ranges::enable_view<Record> ||
    requires(typename FormOf<Record>::type::template Matrix<float, 1, 1> reference) {
  reference.first;
};
template <class Record>
concept IsTrainer = requires {
  typename Record::State;
  typename Record::Options;
};

/// What stands before the records in a slot. All zeros and all ones are none.
struct SlotHead {
  static constexpr std::uint32_t kMagic = 0x31'54'54'41;  // ATT1
  std::uint32_t magic;
  std::uint32_t fingerprint;  // of the types of the records
  std::uint32_t size;         // bytes behind the head, in whole units
  std::uint32_t sequence;     // one more with each save; wraps
  std::uint32_t body_crc;
  std::uint32_t crc;  // of the words above

  [[nodiscard]] std::uint32_t own_crc() const {
    return crc32(reinterpret_cast<const unsigned char*>(this), offsetof(SlotHead, crc));
  }
};

/// Where a valid state stands. `pages` is 0: nowhere.
struct SlotPlace {
  std::uint32_t sequence = 0;
  std::uint16_t page = 0, pages = 0;
};

/// The difference of sequence numbers, which wrap.
[[nodiscard]] constexpr bool newer(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace detail

/// The records are trivially copyable, without pointers: states of models, one's own struct. What a save is
/// to keep stays the same while it runs. Two stores of the same records in one flash take turns, as may any
/// two calls; other records in the same flash hide them: put all into one store.
template <class Flash, class... Records>
class FlashStore {
  static_assert(FlashMemory<Flash>,
                "attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, "
                "program, erase and sync, which answer a Status");
  using Head = detail::SlotHead;
  using Place = detail::SlotPlace;

  static constexpr std::uint32_t kUnit = Flash::kProgramUnit, kPageSize = Flash::kPageSize;
  static constexpr std::uint32_t kChunk = (std::max<std::uint32_t>)(16, kUnit);

  static constexpr std::uint32_t up_to_whole(std::uint64_t bytes, std::uint32_t of) {
    return static_cast<std::uint32_t>((bytes + of - 1) / of * of);
  }

 public:
  /// Bytes of a head and of the records, each in whole program units.
  static constexpr std::uint32_t kHeadSize = up_to_whole(sizeof(Head), kUnit);
  /// Bytes of the records, each in whole program units.
  static constexpr std::uint32_t kBodySize = (0u + ... + up_to_whole(sizeof(Records), kUnit));
  /// Pages of a slot: a head and the records.
  static constexpr std::uint32_t kSlotPages = up_to_whole(kHeadSize + kBodySize, kPageSize) / kPageSize;
  /// Slots: each save goes to the next one.
  static constexpr std::uint32_t kSlots = Flash::kPages / kSlotPages;
  /// RAM of an object and of its buffers on the stack, at most: a program unit and 64 bytes.
  static constexpr std::size_t kRam =
      sizeof(Flash*) + sizeof(std::uint32_t) + sizeof(Head) + 2 * sizeof(Place) + kChunk;

  static_assert((std::is_trivially_copyable_v<Records> && ...),
                "attune::FlashStore: records are saved byte by byte and must be trivially copyable");
  static_assert(
      (!detail::RefersElsewhere<Records> && ...),
      "attune::FlashStore: a record is a pointer or a view, whose address would be saved; store what "
      "it points to");
  static_assert((!detail::IsTrainer<Records> && ...),
                "attune::FlashStore: a Trainer is no record; store trainer.state(), of Trainer::State");
  static_assert(kUnit >= 1 && kUnit <= 32 && (kUnit & (kUnit - 1)) == 0,
                "attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes");
  static_assert(
      kPageSize % kUnit == 0 && kPageSize >= kHeadSize,
      "attune::FlashStore: Flash::kPageSize must be a multiple of the program unit, and 32 or more");
  static_assert(Flash::kPages <= 0xFFFF && std::uint64_t{kPageSize} * Flash::kPages <= 0xFFFF'FFFFu,
                "attune::FlashStore: at most 65535 pages and 4 GiB; give the store a part of the flash");
  static_assert(
      kSlots >= 2,
      "attune::FlashStore: a state that power cuts cannot break needs two slots of kSlotPages pages; "
      "give the store more pages, or fewer records");

  /// A store in that flash, which must outlive it. Nothing is read yet.
  constexpr explicit FlashStore(Flash& flash) : flash_(flash) {}

  /// Reads the newest valid state. A state is copied only after all of it was read and verified.
  /// kNothingStored where there is none, kOtherState where the newest is of records of other types, or what
  /// Flash::read answered: then nothing has changed. kUnreadable: there is a state, but neither it nor an
  /// older one could be read a second time; all bytes of the records are zero.
  Status load(Records&... records) {
    Place place;
    if (const Status found = find_older(place); found != Status::kOk) return found;
    Status status = copy(place, records...);
    if (status == Status::kOtherState) return status;
    while (status != Status::kOk && find_older(place) == Status::kOk) status = copy(place, records...);
    return status == Status::kOk ? status : Status::kUnreadable;
  }

  /// Writes a state, into the slot behind the newest valid one's. kOk only after all of it was read back;
  /// after any other status, as after a power cut, the state is the one before or this one, and the next save
  /// takes another slot where there is a third. kNotErased: a page is worn. kNotProgrammed: bits are stuck.
  /// Else what Flash answered.
  ///
  /// Over a newest state of other types, of another size, that stands in the way of all slots there is no old
  /// state to keep.
  ///
  /// A record that has check() is asked first, and what is not kOk is not saved: a Trainer::State between the
  /// slices of an update (kUnderWay), or of a trainer that was never initialized (kOtherState).
  Status save(const Records&... records) {
    Status asked = Status::kOk;
    (void)(((asked = check(records)) == Status::kOk) && ...);
    if (asked != Status::kOk) return asked;
    Place newest;
    const Status found = find_older(newest);
    if (found != Status::kOk && found != Status::kNothingStored) return found;
    const std::uint32_t page = slot_behind(newest) * kSlotPages;
    const Status status = write(page, newest.sequence + 1 + failures_, records...);
    failures_ = status == Status::kOk ? 0 : failures_ + 1;
    return status;
  }

 private:
  static constexpr std::uint32_t kTypes = [] {
    std::uint32_t crc = 0;
    [[maybe_unused]] const auto add = [&crc](std::uint32_t word) {
      for (int shift = 0; shift < 32; shift += 8) {
        const auto byte = static_cast<unsigned char>(word >> shift & 0xFF);
        crc = crc32(&byte, 1, crc);
      }
    };
    ((add(kFingerprintOf<Records>), add(std::uint32_t{sizeof(Records)})), ...);
    return crc;
  }();

  template <class Record>
  static Status check([[maybe_unused]] const Record& record) {
    if constexpr (requires {
                    { record.check() } -> std::same_as<Status>;
                  }) {
      return record.check();
    } else {
      return Status::kOk;
    }
  }

  // ---- Reading ----

  /// What stands at a page: kOk, and a head whose body was verified; kNothingStored; what Flash answered.
  Status verify(std::uint32_t page, Head& head) {
    std::uint32_t at = page * kPageSize;
    if (const Status status = read_head(page, head); status != Status::kOk) return status;
    at += kHeadSize;
    std::uint32_t crc = 0;
    for (std::uint32_t left = head.size, bytes; left > 0; left -= bytes, at += bytes) {
      unsigned char chunk[kChunk];
      bytes = (std::min)(left, kChunk);
      if (const Status status = flash_.read(at, chunk, bytes); status != Status::kOk) return status;
      crc = crc32(chunk, bytes, crc);
    }
    return crc == head.body_crc ? Status::kOk : Status::kNothingStored;
  }

  Status read_head(std::uint32_t page, Head& head) {
    const Status status = flash_.read(page * kPageSize, &head, sizeof head);
    if (status != Status::kOk) return status;
    const bool valid = head.magic == Head::kMagic && head.crc == head.own_crc() &&
                       head.size <= (Flash::kPages - page) * kPageSize - kHeadSize;
    return valid ? Status::kOk : Status::kNothingStored;
  }

  /// The newest valid state of all, or of those older than `place` if it is one. States of other types,
  /// perhaps of another size, begin at any page.
  Status find_older(Place& place) {
    Place best;
    for (std::uint32_t page = 0; page < Flash::kPages;) {
      Head head;
      const Status status = verify(page, head);
      if (status != Status::kOk && status != Status::kNothingStored && status != Status::kUnreadable)
        return status;
      std::uint32_t pages = 1;
      if (status == Status::kOk) {
        pages = up_to_whole(kHeadSize + head.size, kPageSize) / kPageSize;
        if ((place.pages == 0 || detail::newer(place.sequence, head.sequence)) &&
            (best.pages == 0 || detail::newer(head.sequence, best.sequence)))
          best = {head.sequence, static_cast<std::uint16_t>(page), static_cast<std::uint16_t>(pages)};
      }
      page += pages;
    }
    if (best.pages == 0) return Status::kNothingStored;
    place = best;
    return Status::kOk;
  }

  /// A state that was verified, into the records. It is verified again on the way, as what was read may
  /// differ: kUnreadable then, and the records are zero.
  Status copy(const Place& place, Records&... records) {
    Head head;
    const Status status = read_head(place.page, head);
    if (status == Status::kOk && head.fingerprint != kTypes) return Status::kOtherState;
    [[maybe_unused]] std::uint32_t at = place.page * kPageSize + kHeadSize;
    std::uint32_t crc = 0;
    if (status == Status::kOk && head.sequence == place.sequence && head.size == kBodySize &&
        (copy_record(at, &records, sizeof records, crc) && ...) && crc == head.body_crc)
      return Status::kOk;
    (std::memset(static_cast<void*>(&records), 0, sizeof records), ...);
    return Status::kUnreadable;
  }

  bool copy_record(std::uint32_t& at, void* record, std::size_t size, std::uint32_t& crc) {
    const std::size_t rest = size % kUnit, whole = size - rest;
    auto* const bytes = static_cast<unsigned char*>(record);
    if (whole > 0 && flash_.read(at, bytes, whole) != Status::kOk) return false;
    crc = crc32(bytes, whole, crc);
    at += static_cast<std::uint32_t>(whole);
    if (rest == 0) return true;
    unsigned char unit[kUnit];
    if (flash_.read(at, unit, kUnit) != Status::kOk) return false;
    crc = crc32(unit, kUnit, crc);
    std::memcpy(bytes + whole, unit, rest);
    at += kUnit;
    return true;
  }

  // ---- Writing ----

  /// A slot that does not touch the newest state; after failures others than before.
  std::uint32_t slot_behind(const Place& newest) const {
    const std::uint32_t first = newest.page / kSlotPages;
    if (newest.pages == 0 || first >= kSlots) return failures_ % kSlots;
    const std::uint32_t behind = (std::min)((newest.page + newest.pages - 1u) / kSlotPages + 1,
                                            kSlots);  // the last one touched, and 1
    const std::uint32_t others = kSlots - (behind - first);
    return (behind + failures_ % (std::max<std::uint32_t>)(others, 1)) % kSlots;
  }

  Status write(std::uint32_t page, std::uint32_t sequence, const Records&... records) {
    Head head{Head::kMagic, kTypes, kBodySize, sequence, 0, 0};
    std::uint32_t at = page * kPageSize + kHeadSize;
    Status status = erase(page);
    if (status == Status::kOk)
      (void)(((status = program(at, &records, sizeof records, head.body_crc)) == Status::kOk) && ...);
    if (status == Status::kOk) status = flash_.sync();
    head.crc = head.own_crc();
    at = page * kPageSize;
    std::uint32_t unused = 0;
    if (status == Status::kOk) status = program(at, &head, sizeof head, unused);
    if (status == Status::kOk) status = flash_.sync();
    if (status != Status::kOk) return status;
    // As the next load will see it.
    status = verify(page, head);
    if (status == Status::kNothingStored || status == Status::kUnreadable) return Status::kNotProgrammed;
    return status == Status::kOk && head.sequence != sequence ? Status::kNotProgrammed : status;
  }

  Status erase(std::uint32_t page) {
    const std::uint32_t begin = page * kPageSize, end = begin + kSlotPages * kPageSize;
    for (std::uint32_t at = begin; at < end; at += kPageSize) {
      if (const Status status = flash_.erase(at); status != Status::kOk) return status;
    }
    if (const Status status = flash_.sync(); status != Status::kOk) return status;
    for (std::uint32_t at = begin, bytes; at < end; at += bytes) {
      unsigned char chunk[kChunk];
      bytes = (std::min)(kChunk, end - at);
      const Status status = flash_.read(at, chunk, bytes);
      if (status != Status::kOk) return status == Status::kUnreadable ? Status::kNotErased : status;
      const auto erased = [](unsigned char byte) { return byte == Flash::kErased; };
      if (!std::all_of(chunk, chunk + bytes, erased)) return Status::kNotErased;
    }
    return Status::kOk;
  }

  /// Whole units from where they are, and the rest of a last one filled up.
  Status program(std::uint32_t& at, const void* from, std::size_t size, std::uint32_t& crc) {
    const std::size_t rest = size % kUnit, whole = size - rest;
    const auto* const bytes = static_cast<const unsigned char*>(from);
    crc = crc32(bytes, whole, crc);
    if (whole > 0) {
      if (const Status status = flash_.program(at, bytes, whole); status != Status::kOk) return status;
      at += static_cast<std::uint32_t>(whole);
    }
    if (rest == 0) return Status::kOk;
    unsigned char unit[kUnit];
    std::memset(unit, Flash::kErased, kUnit);
    std::memcpy(unit, bytes + whole, rest);
    crc = crc32(unit, kUnit, crc);
    const Status status = flash_.program(at, unit, kUnit);
    at += kUnit;
    return status;
  }

  Flash& flash_;
  std::uint32_t failures_ = 0;  // saves since the last one that was kOk
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
