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
// without counts only if there is no other. On flash whose bits do not settle after a cut, about one
// history of a dozen cuts in 10,000 loses examples (flash_replay_memory_test.cpp). Every stored example
// erases one slot. Sampling stores the n-th example with probability capacity/n, so wear grows only with the
// logarithm of n.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
  static_assert(detail::Holds<(kSlots > kBlocks)>,
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

  struct Place {
    std::uint32_t sequence;
    std::uint16_t slot;
    bool complete;  // has its mark
  };

  void forget() {
    this->forget_counts();
    for (Place& place : places_) place = {0, kNone, false};
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

  /// Takes the block of a slot, if it is valid and preferred.
  Status find_block(std::uint32_t slot) {
    detail::ReplayHead head;
    const Status read = read_head(slot, head);
    if (read == Status::kNothingStored) return Status::kOk;
    if (read != Status::kOk) return read;
    if (head.fingerprint != Sampler::kFingerprint || head.block >= kBlocks) return Status::kOtherState;
    if (head.base_crc != base_crc_) return Status::kOtherBase;
    Entry entry;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {
      const Status found = read_entry(slot, index, entry);
      if (found == Status::kUnreadable) return Status::kOk;
      if (found != Status::kOk) return found;
    }
    detail::SlotMark mark;
    if (const Status marked = detail::read_mark(flash_, at_mark(slot), mark); marked != Status::kOk)
      return marked;
    sequence_ = (std::max)(sequence_, head.sequence);
    wear_ = (std::max)(wear_, head.wear);
    Place& best = places_[head.block];
    const bool is_newer = head.sequence > best.sequence;
    // Without a mark the older one: the newer one was written when that counted as complete.
    if (best.slot == kNone || (mark.begun != best.complete ? mark.begun : is_newer == mark.begun))
      best = {head.sequence, static_cast<std::uint16_t>(slot), mark.begun};
    return Status::kOk;
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
    const Place& place = places_[static_cast<std::uint32_t>(number) / kBlockEntries];
    return place.slot == kNone ? Status::kUnreadable : read_entry(place.slot, index, entry);
  }
  /// Writes the block of an example into an unused slot. Other examples that cannot be read are dropped.
  Status write(int number, const Entry& entry) {
    if (!opened_) return Status::kNotInitialized;
    const std::uint32_t block = static_cast<std::uint32_t>(number) / kBlockEntries;
    const std::uint32_t own_index = static_cast<std::uint32_t>(number) % kBlockEntries;
    std::uint32_t slot = 0, wear = 0;
    if (const Status found = find_unused(slot, wear); found != Status::kOk) return found;
    const Status written = write_block(slot, block, own_index, entry, wear + 1);
    failed_slot_ = written == Status::kOk ? kNone : static_cast<std::uint16_t>(slot);
    if (written != Status::kOk) return written;
    places_[block] = {++sequence_, static_cast<std::uint16_t>(slot), true};
    wear_ = (std::max)(wear_, wear + 1);
    return Status::kOk;
  }
  /// A slot without a block of the memory, and its erasures: one with a block without a mark first, which
  /// must not outlive the complete ones; then the least worn. The one that failed last only if there is no
  /// other.
  Status find_unused(std::uint32_t& slot, std::uint32_t& wear) {
    slot = kNone;
    for (std::uint32_t candidate = 0; candidate < kSlots; ++candidate) {
      const bool is_used = std::any_of(places_, places_ + kBlocks,
                                       [&](const Place& place) { return place.slot == candidate; });
      if (is_used || (candidate == failed_slot_ && kSlots > kBlocks + 1)) continue;
      detail::ReplayHead head;
      const Status read = read_head(candidate, head);
      if (read != Status::kOk && read != Status::kNothingStored) return read;
      detail::SlotMark mark;
      if (const Status marked = detail::read_mark(flash_, at_mark(candidate), mark); marked != Status::kOk)
        return marked;
      const bool incomplete = read == Status::kOk && !mark.begun;
      const bool is_new = detail::is_erased<Flash>(reinterpret_cast<unsigned char*>(&head), sizeof head);
      const std::uint32_t erasures = read == Status::kOk ? head.wear : is_new ? 0 : wear_;
      if (slot != kNone && erasures >= wear && !incomplete) continue;
      slot = candidate;
      wear = erasures;
      if (incomplete) return Status::kOk;
    }
    return Status::kOk;
  }
  Status write_block(std::uint32_t slot, std::uint32_t block, std::uint32_t own_index, const Entry& own,
                     std::uint32_t wear) {
    if (const Status erased = erase(slot); erased != Status::kOk) return erased;
    for (std::uint32_t index = 0; index < kBlockEntries; ++index) {
      StoredEntry stored;
      std::memset(static_cast<void*>(&stored), 0, sizeof stored);
      if (index == own_index) {
        stored.entry = own;
      } else if (places_[block].slot != kNone) {
        const Status read = read_entry(places_[block].slot, index, stored.entry);
        if (read == Status::kUnreadable) continue;
        if (read != Status::kOk) return read;
      }
      if (stored.entry.number == 0) continue;
      stored.crc = crc32(reinterpret_cast<const unsigned char*>(&stored), sizeof(Entry));
      const Status programmed = program(at_entry(slot, index), stored);
      if (programmed != Status::kOk) return programmed;
    }
    const std::uint32_t next = sequence_ + 1;
    detail::ReplayHead head{
        detail::ReplayHead::kMagic, Sampler::kFingerprint, base_crc_, block, next, wear, 0};
    head.crc = head.own_crc();
    if (const Status status = program(first_byte(slot), head); status != Status::kOk) return status;
    const std::uint32_t mark[] = {next, ~next};
    return program(at_mark(slot), mark);
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
      std::memcpy(unit, bytes + done, (std::min<std::size_t>)(kUnit, sizeof record - done));
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
