// Power-safe storage in flash: after a power cut at any time, it holds the old state or the new one.
//
//   struct Settings {
//     static constexpr std::uint32_t kFingerprint = 1;
//     std::uint32_t utterances;
//     char name[12];
//   };
//   attune::FlashStore<BoardFlash, Trainer::State, Settings> store(flash);
//   status = trainer.resume([&](Trainer::State& state) { return store.load(state, settings); });
//   if (status != attune::Status::kOk) start_anew();
//   …
//   status = store.save(trainer.state(), settings);
//
// A stored state loads only into records of the same size and kFingerprintOf (core/fingerprint.hpp). A
// Trainer::State distinguishes models. Bare parameters, and structs without kFingerprint, are distinguished
// by size alone.
//
// Flash is a type that describes the flash and transfers bytes. `at` counts bytes from the start of the
// store:
//
//   static constexpr std::uint32_t kPageSize;     // bytes that are erased together
//   static constexpr std::uint32_t kPages;        // of the store
//   static constexpr std::uint32_t kProgramUnit;  // 1 to 32 bytes that are programmed together
//   static constexpr unsigned char kErased;       // value of an erased byte, 0xFF or 0x00
//   attune::Status read(std::uint32_t at, void* to, std::size_t bytes);            // any place and number
//   attune::Status program(std::uint32_t at, const void* from, std::size_t bytes); // whole units; from: any
//   attune::Status erase(std::uint32_t at);       // one page
//   attune::Status sync();                        // returns when all before is in the flash
//
// read returns kUnreadable for bytes that error correction cannot restore, as a power cut may leave them.
// This invalidates the state at that place. Any other error (kFlashFault, of a bus or a driver) ends the
// call.
//
// Slots consist of whole pages, as many slots as fit, and are used in turn. A slot is a head followed by the
// records, each padded to whole units with the erased byte. A save erases the slot after the newest state. It
// programs the records, then the head with its sequence number and CRCs, and reads everything back. It
// programs nothing twice, and only after reading it as erased. Write-once flash (ECC rows) therefore needs
// nothing else. Every call reads the flash: a FlashStore caches nothing that could become wrong.
//
// Two slots are enough if flash reads the same every time after a power cut. A third slot covers unstable
// bits: a head that was programmed during the cut and is valid only sometimes.
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

namespace ATTUNE_NAMESPACE {

/// The interface of a flash: see the top of this file.
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
concept IsTrainer = requires {
  typename Record::State;
  typename Record::Options;
};

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
};

/// The place of a valid state; `pages` is 0 if there is none.
struct SlotPlace {
  std::uint32_t sequence = 0;
  std::uint16_t page = 0, pages = 0;
};

/// Whether sequence number a is newer than b; the numbers wrap around.
[[nodiscard]] constexpr bool newer(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace detail

/// Stores records: trivially copyable values without pointers, such as states of models or your own struct. A
/// record must not change during its save. Two stores of the same records in one flash may alternate calls.
/// Other records in the same flash hide them, so put all records into one store.
template <class Flash, class... Records>
class FlashStore {
  static_assert(FlashMemory<Flash>,
                "attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, "
                "program, erase and sync, which return a Status");
  using Head = detail::SlotHead;
  using Place = detail::SlotPlace;

  static constexpr std::uint32_t kUnit = Flash::kProgramUnit, kPageSize = Flash::kPageSize;
  static constexpr std::uint32_t kChunk = (std::max<std::uint32_t>)(16, kUnit);

  static constexpr std::uint32_t up_to_whole(std::uint64_t bytes, std::uint32_t of) {
    return static_cast<std::uint32_t>((bytes + of - 1) / of * of);
  }

 public:
  /// Bytes of the head, in whole program units.
  static constexpr std::uint32_t kHeadSize = up_to_whole(sizeof(Head), kUnit);
  /// Bytes of the records, each in whole program units.
  static constexpr std::uint32_t kBodySize = (0u + ... + up_to_whole(sizeof(Records), kUnit));
  /// Pages of a slot: a head and the records.
  static constexpr std::uint32_t kSlotPages = up_to_whole(kHeadSize + kBodySize, kPageSize) / kPageSize;
  /// The number of slots; each save uses the next one.
  static constexpr std::uint32_t kSlots = Flash::kPages / kSlotPages;
  /// RAM of the object and its buffers on the stack, at most: a program unit and 64 bytes.
  static constexpr std::size_t kRam =
      sizeof(Flash*) + sizeof(std::uint32_t) + sizeof(Head) + 2 * sizeof(Place) + kChunk;

  static_assert((std::is_trivially_copyable_v<Records> && ...),
                "attune::FlashStore: records are saved byte by byte and must be trivially copyable");
  static_assert(
      (!detail::refers_elsewhere<Records>() && ...),
      "attune::FlashStore: a record is a pointer or a view, so its address would be saved; store the data");
  static_assert(
      (!detail::IsTrainer<Records> && ...),
      "attune::FlashStore: a Trainer is not a record; store trainer.state(), of type Trainer::State");
  static_assert(kUnit >= 1 && kUnit <= 32 && (kUnit & (kUnit - 1)) == 0,
                "attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes");
  static_assert(
      kPageSize % kUnit == 0 && kPageSize >= kHeadSize,
      "attune::FlashStore: Flash::kPageSize must be a multiple of the program unit, and 32 or more");
  static_assert(Flash::kPages <= 0xFFFF && std::uint64_t{kPageSize} * Flash::kPages <= 0xFFFF'FFFFu,
                "attune::FlashStore: at most 65535 pages and 4 GiB; give the store a part of the flash");
  static_assert(Flash::kPages >= 2 * kSlotPages,
                "attune::FlashStore: the store needs two slots of kSlotPages pages to survive power cuts; "
                "use more pages, or fewer records");

  /// A store in `flash`, which must outlive it. Reads nothing yet.
  constexpr explicit FlashStore(Flash& flash) : flash_(flash) {}

  /// Reads the newest valid state. Copies it only after it was read and verified as a whole. On an error
  /// nothing changes: kNothingStored without a state, kOtherState if the newest has other record types, or
  /// Flash::read's error. The exception is kUnreadable: neither the newest state nor an older one could be
  /// read a second time. All bytes of the records are then zero.
  Status load(Records&... records) {
    Place place;
    if (const Status found = find_older(place); found != Status::kOk) return found;
    Status status = copy(place, records...);
    if (status == Status::kOtherState) return status;
    while (status != Status::kOk && find_older(place) == Status::kOk) status = copy(place, records...);
    return status == Status::kOk ? status : Status::kUnreadable;
  }

  /// Writes a state into the slot after the newest valid one. Returns kOk only after reading all of it back.
  /// After any other status, as after a power cut, the stored state is the previous one or this one. The next
  /// save then takes another slot if there are three. kNotErased: a page is worn out. kNotProgrammed: bits
  /// are stuck. Otherwise returns Flash's status.
  ///
  /// If the newest state has other record types and its size blocks every slot, the save overwrites it: there
  /// is no old state to keep.
  ///
  /// Records with check() are checked first and not saved unless it returns kOk. Examples are a
  /// Trainer::State between the slices of an update (kUnderWay), or one that was never initialized
  /// (kOtherState).
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
    [[maybe_unused]] const auto add = [&crc](std::uint32_t value) {
      for (int shift = 0; shift < 32; shift += 8) {
        const auto byte = static_cast<unsigned char>(value >> shift & 0xFF);
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

  /// The state at a page: kOk and a head whose body was verified, kNothingStored, or Flash's status.
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

  /// Finds the newest valid state, or the newest that is older than `place` if `place` is one. States of
  /// other types may differ in size, so they can begin at any page.
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

  /// Copies a verified state into the records, and verifies it again: a second read may differ. In that case
  /// returns kUnreadable, with the records zeroed.
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

  /// A slot that does not touch the newest state; a different one after failures.
  std::uint32_t slot_behind(const Place& newest) const {
    const std::uint32_t first = newest.page / kSlotPages;
    if (newest.pages == 0 || first >= kSlots) return failures_ % kSlots;
    const std::uint32_t behind = (std::min)((newest.page + newest.pages - 1u) / kSlotPages + 1,
                                            kSlots);  // the slot after the last one touched
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
    // Verifies it as the next load will.
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

  /// Programs whole units directly from `from`, and pads a last partial unit.
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
  std::uint32_t failures_ = 0;  // saves since the last successful one
};

}  // namespace ATTUNE_NAMESPACE
