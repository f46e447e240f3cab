// A replay memory in flash (replay_memory.hpp), which survives resets and power cuts.
//
//   attune::FlashReplayMemory<Flash, Features, kShape> memory(flash);
//   status = memory.open();
//   status = memory.add(features, label);          // writes only what the sampling stores
//   status = memory.replay<1>(trainer, 10, rng);
//
// Examples lie in blocks of whole pages:
//
//   head      in whole program units, padded with the erased byte
//   entries   each with its CRC, in whole program units; erased: none
//   mark      the sequence number and its complement, as a FlashStore's (slot.hpp)
//
// To store an example, its block is written into an unused slot: entries, head and mark, in this order. After
// a power cut the block is the old one or the new one. A block with its mark was complete before; one
// without counts only if there is no other. On flash whose bits do not settle after a cut, a mark may be
// found once and not later, and a block whose erase was cut may vanish later. So of three versions of a block
// the oldest complete one is erased first, and of two that are both doubtful none, but the block is written
// anew. That takes two slots more than blocks. With one, three cuts can lose a block, as in a store with two
// slots (flash_store.hpp). Every stored example erases one slot. Sampling stores the n-th example with
// probability capacity/n, so wear grows only with the logarithm of n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/kernels/algorithm.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/flash_memory.hpp>
#include <attune/persistence/replay_memory.hpp>
#include <attune/persistence/slot.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of FlashReplayMemory.
struct ReplayOptions {
  std::uint64_t seed = 1;      // another one stores other examples
  std::uint32_t base_crc = 0;  // of the frozen front that computes the features; 0 for inputs
};

namespace detail {

/// The head of a block of stored examples.
struct ReplayHead {
  static constexpr std::uint32_t kMagic = 0x31'52'54'41;  // ATR1
  std::uint32_t magic;
  std::uint32_t fingerprint;  // of the examples
  std::uint32_t base_crc;
  std::uint32_t block;
  std::uint32_t sequence;  // increases with each block that is written
  std::uint32_t wear;      // erasures of this slot
  std::uint32_t crc;       // of the words above

  [[nodiscard]] std::uint32_t own_crc() const {
    return crc32(reinterpret_cast<const unsigned char*>(this), offsetof(ReplayHead, crc));
  }
  [[nodiscard]] bool is_valid() const { return magic == kMagic && crc == own_crc(); }
};

}  // namespace detail

/// Examples in all pages of `Flash`, which the memory does not share.
template <class Flash, class Features, ReplayShape shape>
class FlashReplayMemory
    : public detail::ReplaySampler<FlashReplayMemory<Flash, Features, shape>, Features, shape> {
  static_assert(FlashMemory<Flash>,
                "attune::FlashReplayMemory: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, "
                "program, erase and sync, which return a Status");
  using Sampler = detail::ReplaySampler<FlashReplayMemory, Features, shape>;
  using Layout = detail::SlotLayout<Flash>;
  static constexpr std::uint32_t kUnit = Flash::kProgramUnit;
  static_assert(detail::Holds<(kUnit >= 1 && kUnit <= 32 && (kUnit & (kUnit - 1)) == 0 &&
                               Flash::kPageSize % kUnit == 0)>,
                "attune::FlashReplayMemory: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes, and "
                "kPageSize a multiple of it");

 public:
  using typename Sampler::Counts;
  using typename Sampler::Entry;

 private:
  struct StoredEntry {
    Entry entry;
    std::uint32_t crc;
  };
  static constexpr std::uint32_t kHeadSize = Layout::up_to_whole(sizeof(detail::ReplayHead), kUnit);
  static constexpr std::uint32_t kEntrySize = Layout::up_to_whole(sizeof(StoredEntry), kUnit);

 public:
  /// Pages of a block: as few as take one example.
  static constexpr std::uint32_t kBlockPages =
      Layout::up_to_whole(std::uint64_t{kHeadSize} + kEntrySize + Layout::kMarkSize, Flash::kPageSize) /
      Flash::kPageSize;
  /// Examples of a block.
  static constexpr std::uint32_t kBlockEntries =
      (kBlockPages * Flash::kPageSize - kHeadSize - Layout::kMarkSize) / kEntrySize;
  /// Blocks of the memory.
  static constexpr std::uint32_t kBlocks =
      (static_cast<std::uint32_t>(shape.capacity) + kBlockEntries - 1) / kBlockEntries;
  /// Places for a block. The unused ones share the wear, and replace worn ones.
  static constexpr std::uint32_t kSlots = Flash::kPages / kBlockPages;
  static_assert(detail::HasPages<Flash::kPages, (kBlocks + std::uint64_t{1}) * kBlockPages>,
                "attune::FlashReplayMemory: the flash needs (kBlocks + 1) * kBlockPages pages; give it more "
                "pages, or store fewer examples");
  static_assert(detail::Holds<(kSlots < 0xFFFF)>, "attune::FlashReplayMemory: use at most 65534 blocks");

  /// A memory in `flash`, which must outlive it. Call open() first: until then the memory is empty, and
  /// add() returns kNotInitialized.
  explicit FlashReplayMemory(Flash& flash, const ReplayOptions& options = {})
      : Sampler(options.seed), flash_(flash), base_crc_(options.base_crc) {
    forget();
  }

  /// Finds the stored examples, and writes nothing. kOtherState: the flash has examples of another type or
  /// sampling. kOtherBase: examples of another base_crc. Both: clear() erases them. Otherwise returns Flash's
  /// status.
  ///
  /// `counts` are counts() from before the reset, if the program saved them. Without them counting continues
  /// after the newest stored example, and examples after the reset are favored.
  Status open(const Counts& counts = {}) {
    forget();
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      if (const Status found = find_block(slot); found != Status::kOk) {
        forget();
        return found;
      }
    }
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      if (const Status counted = count_block(block); counted != Status::kOk) {
        forget();
        return counted;
      }
    }
    this->count(counts);
    opened_ = true;
    return Status::kOk;
  }
  /// Erases all examples. After a power cut, open() finds some of them.
  Status clear() {
    forget();
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      if (const Status erased = erase(slot); erased != Status::kOk) return erased;
    }
    opened_ = true;
    return Status::kOk;
  }

  /// The largest number of erasures of a page, as far as heads tell it; clear() forgets it.
  [[nodiscard]] std::uint32_t wear() const { return wear_; }
  /// The number of blocks written since clear(), in other words of stored examples.
  [[nodiscard]] std::uint32_t writes() const { return sequence_; }

 private:
  friend Sampler;
  static constexpr std::uint16_t kNone = 0xFFFF;

  using Content = detail::SlotWorth::Content;
  enum class Mark : std::uint8_t {
    kNone = 0,  // a cut before it, or in it
    kRead = 1,  // by open(): if a cut has hit it, it may read differently later
    kFirm = 2,  // programmed since open()
  };
  struct Place {
    std::uint32_t sequence;
    std::uint16_t slot;
    Mark mark;
    std::uint8_t others;  // other slots with the block, when a slot was last searched; 2 stands for more
  };
  static constexpr Place kNowhere{0, kNone, Mark::kNone, 0};
  /// A slot that has no block of the memory.
  struct Unused {
    detail::SlotWorth worth;
    std::uint32_t block;     // that it had, unless it has nothing
    std::uint32_t erasures;  // as far as its head tells them
  };
  /// In the order in which unused slots are erased.
  enum class Loss : std::uint8_t {
    kNone = 0,      // nothing, or a block that was written since
    kOfThree = 1,   // two versions of its block remain
    kOlder = 2,     // the older one of two complete versions
    kDoubtful = 3,  // one of two versions, and the other one may vanish
  };

  void forget() {
    this->forget_counts();
    for (Place& place : places_) place = kNowhere;
    sequence_ = wear_ = 0;
    failed_slot_ = kNone;
    opened_ = false;
  }
  static constexpr std::uint32_t first_byte(std::uint32_t slot) {
    return slot * kBlockPages * Flash::kPageSize;
  }
  static constexpr std::uint32_t at_entry(std::uint32_t slot, std::uint32_t index) {
    return first_byte(slot) + kHeadSize + index * kEntrySize;
  }
  static constexpr std::uint32_t at_mark(std::uint32_t slot) { return at_entry(slot, kBlockEntries); }

  /// kNothingStored: it is not valid in any of kFlashReads reads.
  Status read_head(std::uint32_t slot, detail::ReplayHead& head) {
    head = {};
    for (int reads = 0; reads < detail::kFlashReads; ++reads) {
      const Status read = flash_.read(first_byte(slot), &head, sizeof head);
      if (read == Status::kOk && head.is_valid()) return Status::kOk;
      if (read != Status::kOk && read != Status::kUnreadable) return read;
    }
    return Status::kNothingStored;
  }
  /// An erased entry has the number 0. kUnreadable: it is not valid in any of kFlashReads reads.
  Status read_entry(std::uint32_t slot, std::uint32_t index, Entry& entry) {
    StoredEntry stored;
    auto* const bytes = reinterpret_cast<unsigned char*>(&stored);
    for (int reads = 0; reads < detail::kFlashReads; ++reads) {
      const Status read = flash_.read(at_entry(slot, index), &stored, sizeof stored);
      if (read == Status::kUnreadable) continue;
      if (read != Status::kOk) return read;
      const bool none = detail::is_erased<Flash>(bytes, sizeof stored);
      if (!none && stored.crc != crc32(bytes, sizeof(Entry))) continue;
      if (none) std::memset(bytes, 0, sizeof stored);
      entry = stored.entry;
      const bool fits = entry.label < shape.num_classes && entry.length <= Features::rows;
      return fits ? Status::kOk : Status::kUnreadable;
    }
    return Status::kUnreadable;
  }

  /// Takes the block of a slot, if it is valid and preferred, and `only`, if that is a block.
  Status find_block(std::uint32_t slot, std::uint32_t only = kNone) {
    detail::ReplayHead head;
    const Status read = read_head(slot, head);
    if (read == Status::kNothingStored) return Status::kOk;
    if (read != Status::kOk) return read;
    if (head.fingerprint != Sampler::kFingerprint || head.block >= kBlocks) return Status::kOtherState;
    if (head.base_crc != base_crc_) return Status::kOtherBase;
    if (only != kNone && head.block != only) return Status::kOk;
    sequence_ = detail::larger(sequence_, head.sequence);
    wear_ = detail::larger(wear_, head.wear);
    Entry entry;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {
      const Status found = read_entry(slot, index, entry);
      if (found == Status::kUnreadable) return Status::kOk;
      if (found != Status::kOk) return found;
    }
    detail::SlotMark mark;
    if (const Status marked = detail::read_mark(flash_, at_mark(slot), mark); marked != Status::kOk)
      return marked;
    Place& best = places_[head.block];
    const bool is_newer = head.sequence > best.sequence, is_complete = best.mark != Mark::kNone;
    // Without a mark the older one: the newer one was written when that counted as complete.
    if (best.slot == kNone || (mark.begun != is_complete ? mark.begun : is_newer == mark.begun))
      best = {head.sequence, static_cast<std::uint16_t>(slot), mark.begun ? Mark::kRead : Mark::kNone, 0};
    return Status::kOk;
  }
  /// Takes another version of a block that cannot be read any more, if there is one.
  Status find_again(std::uint32_t block) {
    const Place before = places_[block];
    places_[block] = kNowhere;
    Status found = Status::kOk;
    for (std::uint32_t slot = 0; slot < kSlots && found == Status::kOk; ++slot)
      found = find_block(slot, block);
    if (places_[block].slot == kNone) places_[block] = before;
    return found;
  }
  Status count_block(std::uint32_t block) {
    if (places_[block].slot == kNone) return Status::kOk;
    Entry entry;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {
      const Status read = read_entry(places_[block].slot, index, entry);
      if (read == Status::kOk) this->count(entry);
      if (read != Status::kOk && read != Status::kUnreadable) return read;
    }
    return Status::kOk;
  }

  Status read(int number, Entry& entry) {
    const std::uint32_t index = static_cast<std::uint32_t>(number) % kBlockEntries;
    const std::uint32_t block = static_cast<std::uint32_t>(number) / kBlockEntries;
    const Place& place = places_[block];
    if (place.slot == kNone) return Status::kUnreadable;
    const Status read = read_entry(place.slot, index, entry);
    if (read != Status::kUnreadable || place.mark == Mark::kFirm) return read;
    const Status found = find_again(block);
    return found == Status::kOk ? read_entry(place.slot, index, entry) : found;
  }
  /// Writes the block of an example into an unused slot. Other examples that cannot be read are dropped. A
  /// block with doubtful versions is written first.
  Status write(int number, const Entry& entry) {
    if (!opened_) return Status::kNotInitialized;
    const std::uint32_t block = static_cast<std::uint32_t>(number) / kBlockEntries;
    const std::uint32_t own_index = static_cast<std::uint32_t>(number) % kBlockEntries;
    for (;;) {
      Unused target;
      std::uint32_t doubtful = block;
      if (const Status found = find_unused(target, doubtful); found != Status::kOk) return found;
      const Status written = doubtful == block ? write_block(target, block, own_index, entry)
                                               : write_block(target, doubtful, kBlockEntries, entry);
      failed_slot_ = written == Status::kOk ? kNone : static_cast<std::uint16_t>(target.worth.slot);
      if (written != Status::kOk || doubtful == block) return written;
    }
  }
  Status look_at(std::uint32_t slot, Unused& unused) {
    detail::ReplayHead head;
    const Status read = read_head(slot, head);
    if (read != Status::kOk && read != Status::kNothingStored) return read;
    const bool is_new = detail::is_erased<Flash>(reinterpret_cast<unsigned char*>(&head), sizeof head);
    unused = {{slot, 0, Content::kNothing}, 0, is_new ? 0 : wear_};
    if (read == Status::kNothingStored) return Status::kOk;
    detail::SlotMark mark;
    const Status marked = detail::read_mark(flash_, at_mark(slot), mark);
    unused = {
        {slot, head.sequence, mark.begun ? Content::kComplete : Content::kIncomplete}, head.block, head.wear};
    return marked;
  }
  /// Calls visit(unused) for each unused slot, but for the one that failed last, unless there is no other.
  Status for_each_unused(const auto& visit) {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const bool is_used = detail::any_of(places_, [slot](const Place& place) { return place.slot == slot; });
      if (is_used || (slot == failed_slot_ && kSlots > kBlocks + 1)) continue;
      Unused unused;
      if (const Status status = look_at(slot, unused); status != Status::kOk) return status;
      visit(unused);
    }
    return Status::kOk;
  }
  [[nodiscard]] Loss loss_of(const Unused& unused) const {
    if (unused.worth.content == Content::kNothing) return Loss::kNone;
    const Place& place = places_[unused.block];
    if (place.mark == Mark::kFirm) return Loss::kNone;
    if (place.slot != kNone && place.others > 1) return Loss::kOfThree;
    const bool is_older = place.mark == Mark::kRead && unused.worth.content == Content::kComplete &&
                          unused.worth.sequence < place.sequence;
    return is_older ? Loss::kOlder : Loss::kDoubtful;
  }
  [[nodiscard]] bool is_before(const Unused& a, const Unused& b) const {
    const Loss loss_of_a = loss_of(a), loss_of_b = loss_of(b);
    if (loss_of_a != loss_of_b) return loss_of_a < loss_of_b;
    return loss_of_a == Loss::kOfThree ? a.worth.before(b.worth) : a.erasures < b.erasures;
  }
  /// The slot to erase next. If a block has two doubtful versions and the slot has neither, `doubtful`
  /// becomes that block, which is to be written there.
  Status find_unused(Unused& target, std::uint32_t& doubtful) {
    for (Place& place : places_) place.others = 0;
    const Status counted = for_each_unused([this](const Unused& unused) {
      std::uint8_t& others = places_[unused.block].others;
      if (unused.worth.content != Content::kNothing && others < 2) ++others;
    });
    if (counted != Status::kOk) return counted;
    target = {};
    std::uint32_t found = doubtful;
    const Status chosen = for_each_unused([&](const Unused& unused) {
      if (target.worth.slot == detail::SlotWorth::kNoSlot || is_before(unused, target)) target = unused;
      const bool is_doubtful = loss_of(unused) == Loss::kDoubtful && places_[unused.block].slot != kNone;
      if (is_doubtful && unused.block != doubtful) found = unused.block;
    });
    if (loss_of(target) != Loss::kDoubtful) doubtful = found;
    return chosen;
  }
  Status write_block(const Unused& target, std::uint32_t block, std::uint32_t own_index, const Entry& own) {
    const std::uint32_t slot = target.worth.slot;
    StoredEntry stored;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {  // before anything is erased
      const Status status = read(static_cast<int>(block * kBlockEntries + index), stored.entry);
      if (status != Status::kOk && status != Status::kUnreadable) return status;
    }
    if (places_[block].slot == slot) return Status::kUnreadable;  // it has become the version to keep
    if (const Status erased = erase(slot); erased != Status::kOk) return erased;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {
      std::memset(static_cast<void*>(&stored), 0, sizeof stored);
      if (index == own_index) {
        stored.entry = own;
      } else if (places_[block].slot != kNone) {
        const Status status = read_entry(places_[block].slot, index, stored.entry);
        if (status == Status::kUnreadable) continue;
        if (status != Status::kOk) return status;
      }
      if (stored.entry.number == 0) continue;
      stored.crc = crc32(reinterpret_cast<const unsigned char*>(&stored), sizeof(Entry));
      const Status programmed = program(at_entry(slot, index), stored);
      if (programmed != Status::kOk) return programmed;
    }
    const std::uint32_t next = sequence_ + 1, wear = target.erasures + 1;
    detail::ReplayHead head{
        detail::ReplayHead::kMagic, Sampler::kFingerprint, base_crc_, block, next, wear, 0};
    head.crc = head.own_crc();
    if (const Status status = program(first_byte(slot), head); status != Status::kOk) return status;
    const std::uint32_t mark[] = {next, ~next};
    if (const Status status = program(at_mark(slot), mark); status != Status::kOk) return status;
    places_[block] = {++sequence_, static_cast<std::uint16_t>(slot), Mark::kFirm, 0};
    wear_ = detail::larger(wear_, wear);
    return Status::kOk;
  }
  Status erase(std::uint32_t slot) {
    for (std::uint32_t page = 0; page < kBlockPages; ++page) {
      const Status erased = flash_.erase(first_byte(slot) + page * Flash::kPageSize);
      if (erased != Status::kOk) return erased;
    }
    return flash_.sync();
  }
  /// Programs a record in whole units, and reads it back.
  template <class Record>
  Status program(std::uint32_t at, const Record& record) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&record);
    for (std::uint32_t done = 0; done < sizeof record; done += kUnit) {
      unsigned char unit[kUnit];
      std::memset(unit, Flash::kErased, kUnit);
      std::memcpy(unit, bytes + done, detail::smaller<std::size_t>(kUnit, sizeof record - done));
      const Status programmed = detail::program_unit(flash_, at + done, unit);
      if (programmed != Status::kOk) return programmed;
    }
    if (const Status synced = flash_.sync(); synced != Status::kOk) return synced;
    for (int reads = 0; reads < detail::kFlashReads; ++reads) {  // a read of good bits may fail once
      unsigned char seen[sizeof record];
      const Status read = flash_.read(at, seen, sizeof record);
      if (read == Status::kOk && std::memcmp(seen, bytes, sizeof record) == 0) return Status::kOk;
      if (read != Status::kOk && read != Status::kUnreadable) return read;
    }
    return Status::kNotProgrammed;
  }

  Flash& flash_;
  std::uint32_t base_crc_;
  std::uint32_t sequence_ = 0, wear_ = 0;
  std::uint16_t failed_slot_ = kNone;
  bool opened_ = false;
  Place places_[std::size_t{kBlocks}];
};

}  // namespace ATTUNE_NAMESPACE
