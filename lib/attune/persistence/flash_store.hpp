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
// A main loop with deadlines saves in slices. Each is at most 2,048 instructions on a Cortex-M4, or one
// call of the driver: one page to erase, or one unit to program.
//
//   auto pass = store.save_in_slices(trainer.state(), settings);
//   while (pass.advance()) serve_what_is_due();
//   if (pass.status() != attune::Status::kOk) …
//
// A stored state loads only into records of the same size and kFingerprintOf (core/fingerprint.hpp). A
// Trainer::State distinguishes models. Bare parameters, and structs without kFingerprint, are distinguished
// by size alone.
//
// BoardFlash is a FlashMemory (flash_memory.hpp). Slots consist of whole pages, as many slots as fit. A slot
// has a head, the records and a mark (slot.hpp). A save erases a slot, never the one with the last complete
// state, and never one that was read only once. It programs the records, reads them back, and programs the
// head and the mark that the state is complete. A load takes the newest complete state. Every call reads the
// flash: a FlashStore caches nothing that could become wrong.
//
// Slots outlive power cuts in a row, even if bits that a cut has hit read differently each time. Two slots
// have one exception that no store can avoid: a cut mark and a cut erase that read as if nothing had
// happened, and change later (examples/guide/power-cuts.md). A third slot has no known one, spreads the wear,
// and outlives a page that is worn out. If the records fill their pages, the mark has no room (kHasMark). Two
// slots are then enough only for flash that reads the same every time after a power cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/flash_memory.hpp>
#include <attune/persistence/slot.hpp>
#include <attune/persistence/slot_transfer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Record>
concept IsTrainer = requires {
  typename Record::State;
  typename Record::Options;
};

/// Whether a record may be saved. A state of a training says so without a look at the model's constants.
template <class Record>
Status check_saved([[maybe_unused]] const Record& record) {
  if constexpr (requires {
                  { record.check_saved() } -> std::same_as<Status>;
                }) {
    return record.check_saved();
  } else if constexpr (requires {
                         { record.check() } -> std::same_as<Status>;
                       }) {
    return record.check();
  } else {
    return Status::kOk;
  }
}

/// The fingerprint of records in their order.
template <class... Records>
constexpr std::uint32_t fingerprint_of_records() {
  std::uint32_t crc = 0;
  [[maybe_unused]] const auto add = [&crc](std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) {
      const auto byte = static_cast<unsigned char>(number >> shift & 0xFF);
      crc = crc32(&byte, 1, crc);
    }
  };
  ((add(kFingerprintOf<Records>), add(std::uint32_t{sizeof(Records)})), ...);
  return crc;
}

}  // namespace detail

template <class Flash, class... Records>
class FlashStore;

/// A save in slices, or a load if `Transfer` is one. Records, store and flash must outlive it.
template <class Store, class Transfer, class Byte, class... Records>
class StorePass {
 public:
  /// Does the next slice; false if none is left.
  bool advance() {
    if (done()) return false;
    if constexpr (kSaves) {
      Status checked = Status::kOk;
      const Status status = transfer_.advance(store_->flash_, parts_, [&] { return checked = check(); });
      if (status != Status::kUnderWay || checked != Status::kOk) end(status);
    } else {
      const Status status = transfer_.advance(store_->flash_, parts_);
      if (status != Status::kUnderWay) end(status);
    }
    return true;
  }
  /// Whether nothing is left to do, also after a discard() of the store.
  [[nodiscard]] bool done() const { return pass_ == 0 || store_->pass_ != pass_; }
  /// The result of save() or load(). kUnderWay before the end, and after a discard() of the store.
  Status status() const { return status_; }

 private:
  friend Store;
  static constexpr bool kSaves = std::is_const_v<Byte>;
  using Part = detail::SlotPart<Byte>;

  template <class... Arguments>
  StorePass(Store& store, Status may, const Transfer& transfer, Arguments&... records)
      : store_(&store),
        parts_{Part{reinterpret_cast<Byte*>(&records), static_cast<std::uint32_t>(sizeof records)}...},
        transfer_(transfer) {
    if (may == Status::kOk && kSaves) may = check();
    status_ = may == Status::kOk ? Status::kUnderWay : may;
    if (may == Status::kOk) pass_ = store.begin_pass();
  }
  Status check() const {
    return [this]<std::size_t... i>(std::index_sequence<i...>) {
      Status status = Status::kOk;
      (void)(((status = detail::check_saved(*reinterpret_cast<const Records*>(parts_[i].bytes))) ==
              Status::kOk) &&
             ...);
      return status;
    }
    (std::index_sequence_for<Records...>{});
  }
  void end(Status status) {
    status_ = status;
    store_->end_pass();
    if constexpr (kSaves) store_->count_failure(status);
  }

  Store* store_;
  std::array<Part, sizeof...(Records)> parts_;
  Transfer transfer_;
  Status status_ = Status::kOk;
  std::uint16_t pass_ = 0;  // no pass
};

/// Stores records: trivially copyable values without pointers, such as states of models or your own struct. A
/// record must not change during its save. Two stores of the same records in one flash may alternate calls.
/// A pass in slices ends with an error if another store has saved into its slot meanwhile. Other records in
/// the same flash hide them, so put all records into one store.
template <class Flash, class... Records>
class FlashStore {
  static_assert(FlashMemory<Flash>,
                "attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, "
                "program, erase and sync, which return a Status");
  using Layout = detail::SlotLayout<Flash>;
  static constexpr std::uint32_t kUnit = Flash::kProgramUnit, kPageSize = Flash::kPageSize;

 public:
  /// Bytes of the head, in whole program units.
  static constexpr std::uint32_t kHeadSize = Layout::kHeadSize;
  /// Bytes of the records, each in whole program units.
  static constexpr std::uint32_t kBodySize = (0u + ... + Layout::up_to_whole(sizeof(Records), kUnit));
  /// Pages of a slot: a head and the records.
  static constexpr std::uint32_t kSlotPages = Layout::pages_of(kBodySize);
  /// The number of slots; each save uses the next one.
  static constexpr std::uint32_t kSlots = Flash::kPages / kSlotPages;
  /// Whether the pages of a slot have room for its mark, of 8 bytes in whole program units.
  static constexpr bool kHasMark = Layout::has_mark(kBodySize);

  static_assert(
      detail::Holds<((std::is_trivially_copyable_v<Records> && std::is_copy_constructible_v<Records>)&&...)>,
      "attune::FlashStore: records are saved byte by byte and must be trivially copyable");
  static_assert(
      detail::Holds<((!detail::RefersElsewhere<Records>::value && ...))>,
      "attune::FlashStore: a record is a pointer or a view, so its address would be saved; store the data");
  static_assert(
      detail::Holds<((!detail::IsTrainer<Records> && ...))>,
      "attune::FlashStore: a Trainer is not a record; store trainer.state(), of type Trainer::State");
  static_assert(detail::Holds<(kUnit >= 1 && kUnit <= 32 && (kUnit & (kUnit - 1)) == 0)>,
                "attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes");
  static_assert(
      detail::Holds<(kPageSize % kUnit == 0 && kPageSize >= kHeadSize)>,
      "attune::FlashStore: Flash::kPageSize must be a multiple of the program unit, and 32 or more");
  static_assert(
      detail::Holds<(Flash::kPages <= 0xFFFF && std::uint64_t{kPageSize} * Flash::kPages <= 0xFFFF'FFFFu)>,
      "attune::FlashStore: the flash must have at most 65535 pages and 4 GiB; give the store a part of it");
  static_assert(detail::Holds<(std::uint64_t{0} + ... + sizeof(Records)) < 0xFFFF'0000u>,
                "attune::FlashStore: the records are larger than 4 GiB");
  static_assert(detail::HasPages<Flash::kPages, 2 * kSlotPages>,
                "attune::FlashStore: the store needs two slots of kSlotPages pages to survive power cuts; "
                "use more pages, or fewer records");

 private:
  static constexpr detail::SlotTypes kTypes{detail::fingerprint_of_records<Records...>(), kBodySize,
                                            kSlotPages, kSlots};

 public:
  /// A pass of save_in_slices().
  using SaveInSlices =
      StorePass<FlashStore, detail::SlotSave<Flash, kTypes>, const unsigned char, Records...>;
  /// A pass of load_in_slices().
  using LoadInSlices = StorePass<FlashStore, detail::SlotLoad<Flash, kTypes>, unsigned char, Records...>;
  /// RAM of the store, of a pass, and of buffers on the stack.
  static constexpr std::size_t kRam = sizeof(Flash*) + 2 * sizeof(std::uint16_t) +
                                      detail::larger(sizeof(SaveInSlices), sizeof(LoadInSlices)) +
                                      2 * sizeof(detail::SlotHead) + 2 * Layout::kChunk;

  /// A store in `flash`, which must outlive it. Reads nothing yet.
  constexpr explicit FlashStore(Flash& flash) : flash_(flash) {}

  /// Reads the newest complete state. Copies it only after it was read and verified as a whole. On an error
  /// nothing changes. kNothingStored: there is no state. kOtherState: the newest has other record types.
  /// kUnderWay: during a pass in slices. kUnreadable: sequence numbers cannot be compared. Otherwise returns
  /// Flash::read's error. The exception: a verified state, and every older one, could not be read a second
  /// time. All bytes of the records are then zero, and the status is kUnreadable or Flash's error.
  Status load(Records&... records) {
    LoadInSlices pass = load_in_slices(records...);
    while (pass.advance()) {
    }
    return pass.status();
  }

  /// Writes a state into another slot than the last complete one. Returns kOk only after reading all of it
  /// back. After any other status, as after a power cut, the stored state is the previous one or this one.
  /// The next save then takes another slot if there are three. kNotErased: a page is worn out.
  /// kNotProgrammed: bits are stuck. kUnreadable: flash reads differently each time, or states have sequence
  /// numbers that cannot be compared, and nothing is erased. Otherwise returns Flash's status.
  ///
  /// If the newest state has other record types and its size blocks every slot, the save overwrites it: there
  /// is no old state to keep.
  ///
  /// Records with check_saved(), or else check(), are checked first and not saved unless it returns kOk.
  /// Examples are a Trainer::State between the slices of an update (kUnderWay), or one that was never
  /// initialized (kOtherState).
  Status save(const Records&... records) {
    SaveInSlices pass = save_in_slices(records...);
    while (pass.advance()) {
    }
    return pass.status();
  }

  /// save() in slices: advance() it to its end. Records must not change until then: a save that finds a
  /// change ends with kChangedDuringSave, and the stored state is the previous one. During the pass, other
  /// calls of this store return kUnderWay. The pass is a plain value: forget it after a discard().
  template <class... Sources>
  [[nodiscard]] SaveInSlices save_in_slices(Sources&&... records) {
    check_sources<Sources...>();
    return SaveInSlices(*this, may_begin(), detail::SlotSave<Flash, kTypes>(failures_),
                        static_cast<const Records&>(records)...);
  }
  /// load() in slices. Before its end the records are those from before, or have parts of the state.
  template <class... Sources>
  [[nodiscard]] LoadInSlices load_in_slices(Sources&&... records) {
    check_sources<Sources...>();
    return LoadInSlices(*this, may_begin(), detail::SlotLoad<Flash, kTypes>(),
                        static_cast<Records&>(records)...);
  }
  /// Ends a pass in slices. The stored state is the previous one.
  void discard() { end_pass(); }

 private:
  template <class, class, class, class...>
  friend class StorePass;

  template <class... Sources>
  static constexpr void check_sources() {
    static_assert(detail::Holds<std::is_same_v<void(std::remove_cvref_t<Sources>...), void(Records...)>>,
                  "attune::FlashStore: the arguments are the records of the store, in their order");
    static_assert(detail::Holds<(std::is_lvalue_reference_v<Sources> && ...)>,
                  "attune::FlashStore: a pass in slices uses its records until it ends, and this is a "
                  "temporary; store it in a variable");
  }
  Status may_begin() const { return pass_ % 2 == 0 ? Status::kOk : Status::kUnderWay; }
  std::uint16_t begin_pass() { return ++pass_; }
  void end_pass() { pass_ = static_cast<std::uint16_t>(pass_ + pass_ % 2); }
  void count_failure(Status status) {
    failures_ = status == Status::kOk ? std::uint16_t{0} : static_cast<std::uint16_t>(failures_ + 1);
  }

  Flash& flash_;
  std::uint16_t failures_ = 0;  // saves since the last successful one
  std::uint16_t pass_ = 0;      // odd during a pass, and different for each
};

}  // namespace ATTUNE_NAMESPACE
