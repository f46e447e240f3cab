// A replay memory in flash whose power is cut at any operation.
#include <attune/persistence/flash_replay_memory.hpp>

#include <cmath>
#include <new>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "exchange/unsettled_flash.hpp"

namespace {

using attune::FlashReplayMemory;
using attune::Rng;
using attune::Status;

using Features = attune::Tensor<float, 2, 4>;
constexpr attune::ReplayShape kShape{.capacity = 8, .num_classes = 4};
template <class Flash>
using MemoryIn = FlashReplayMemory<Flash, Features, kShape>;
using Flash = NorFlash<NorShape{.unit = 8, .pages = 9, .page_size = 128}>;
using Memory = MemoryIn<Flash>;
static_assert(Memory::kBlockPages == 1 && Memory::kBlockEntries == 2 && Memory::kBlocks == 4 &&
              Memory::kSlots == 9);

/// Features that tell their number, which 8 bits store exactly.
Features example(int number) {
  Features made;
  for (float& value : made.values) value = static_cast<float>(number);
  made(0, 0) = made(1, 0) = 127;
  return made;
}
int label_of(int number) { return number % kShape.num_classes; }

/// The numbers of the stored examples of each class, the older place first; −1: none, −2: damaged.
struct Contents {
  int numbers[kShape.capacity];
  bool operator==(const Contents&) const = default;
};
/// What a memory stores, by as many draws as find all of it.
template <class SomeMemory>
Contents contents(SomeMemory& memory) {
  Contents found;
  for (int& number : found.numbers) number = -1;
  Rng rng(1);
  for (int draws = 0; draws < 40 && memory.size() > 0; ++draws) {
    Features features;
    int label = 0, length = 0;
    const Status status = memory.draw(rng, features, label, length);
    const int number = static_cast<int>(std::lround(features(1, 3)));
    const bool right = status == Status::kOk && label == label_of(number) && length == 2 &&
                       check::same_bits(features, example(number));
    int* const of_class = found.numbers + 2 * (right ? label : 0);
    if (!right) {
      of_class[0] = -2;
    } else if (of_class[0] == -1 || of_class[0] == number) {
      of_class[0] = number;
    } else {
      of_class[1] = number;
    }
  }
  for (int label = 0; label < kShape.num_classes; ++label) {
    int* const of_class = found.numbers + 2 * label;
    if (of_class[1] >= 0 && of_class[1] < of_class[0]) std::swap(of_class[0], of_class[1]);
  }
  return found;
}
template <class SomeFlash>
Contents stored(SomeFlash& flash) {
  MemoryIn<SomeFlash> memory(flash);
  EXPECT_EQ(memory.open(), Status::kOk);
  return contents(memory);
}

template <class SomeFlash>
void expect_keeps_examples() {
  static SomeFlash flash;
  ::new (&flash) SomeFlash;
  attune::ReplayMemory<Features, kShape> in_ram;
  MemoryIn<SomeFlash> memory(flash);
  EXPECT_EQ(memory.add(example(0), 0), Status::kNotInitialized);
  EXPECT_EQ(memory.open(), Status::kOk);
  for (int number = 0; number < 60; ++number) {
    EXPECT_EQ(memory.add(example(number), label_of(number)), Status::kOk);
    EXPECT_EQ(in_ram.add(example(number), label_of(number)), Status::kOk);
    if (number % 10 == 9) {
      const Contents now = contents(memory);
      EXPECT_TRUE(now == contents(in_ram));
      EXPECT_TRUE(now == stored(flash));
    }
  }
  EXPECT_EQ(flash.misuses, 0u);
}

}  // namespace

TEST(FlashReplayMemory, stores_the_examples_of_a_memory_in_ram_over_resets) {
  expect_keeps_examples<Flash>();
  expect_keeps_examples<NorFlash<NorShape{.unit = 1, .pages = 12}>>();
  expect_keeps_examples<NorFlash<NorShape{.unit = 32, .pages = 30, .erased = 0x00}>>();
}

TEST(FlashReplayMemory, needs_one_slot_more_than_blocks) {
  using Tight = NorFlash<NorShape{.unit = 8, .pages = 5, .page_size = 128}>;
  static_assert(MemoryIn<Tight>::kSlots == MemoryIn<Tight>::kBlocks + 1);
  expect_keeps_examples<Tight>();
}

TEST(FlashReplayMemory, keeps_the_old_example_or_the_new_one_at_every_cut) {
  for (int tear = 0; tear < kTears; ++tear) {
    bool cut = true;
    for (std::uint32_t operation = 0; cut; ++operation) {
      Flash flash(operation + 1);
      Memory memory(flash);
      EXPECT_EQ(memory.open(), Status::kOk);
      for (int number = 0; number < 7; ++number)
        EXPECT_EQ(memory.add(example(number), label_of(number)), Status::kOk);
      const Contents before = contents(memory);
      flash.cut_at(operation, static_cast<Tear>(tear));
      const Status status = memory.add(example(7), label_of(7));
      cut = !flash.powered();
      flash.power_on();
      Contents after = before;
      after.numbers[7] = 7;
      const Contents found = stored(flash);
      EXPECT_TRUE(found == after || (cut && found == before));
      EXPECT_TRUE(status == Status::kOk || cut);
      Memory next(flash);
      EXPECT_EQ(next.open(), Status::kOk);
      EXPECT_EQ(next.add(example(8), label_of(8)), Status::kOk);
      EXPECT_EQ(flash.misuses, 0u);
    }
  }
}

TEST(FlashReplayMemory, reports_and_levels_wear) {
  Flash flash;
  Memory memory(flash);
  EXPECT_EQ(memory.open(), Status::kOk);
  EXPECT_EQ(memory.wear(), 0u);
  for (int number = 0; number < 400; ++number)
    EXPECT_EQ(memory.add(example(number % 120), label_of(number)), Status::kOk);
  // Of each class the first two, and then 2/n: 2 + 2·(1/3 + … + 1/100) ≈ 9.4.
  EXPECT_GT(memory.writes(), 24u);
  EXPECT_LT(memory.writes(), 52u);
  EXPECT_LT(memory.wear(), memory.writes() / 4);
  const std::uint32_t wear = memory.wear(), writes = memory.writes();
  Memory reopened(flash);
  EXPECT_EQ(reopened.open(), Status::kOk);
  EXPECT_EQ(reopened.writes(), writes);
  EXPECT_TRUE(reopened.wear() <= wear && reopened.wear() > 0);
  EXPECT_LT(reopened.counts()[0], 100u);  // the last examples were not stored
  EXPECT_EQ(reopened.open(memory.counts()), Status::kOk);
  EXPECT_EQ(reopened.counts()[0], 100u);
}

TEST(FlashReplayMemory, refuses_examples_of_another_front_or_type) {
  Flash flash;
  Memory memory(flash, {.base_crc = 5});
  EXPECT_EQ(memory.open(), Status::kOk);
  EXPECT_EQ(memory.add(example(3), 3), Status::kOk);
  Memory other_front(flash, {.base_crc = 6});
  EXPECT_EQ(other_front.open(), Status::kOtherBase);
  EXPECT_EQ(other_front.size(), 0);
  EXPECT_EQ(other_front.add(example(3), 3), Status::kNotInitialized);
  FlashReplayMemory<Flash, Features, attune::ReplayShape{.capacity = 8, .num_classes = 2}> other_classes(
      flash, {.base_crc = 5});
  EXPECT_EQ(other_classes.open(), Status::kOtherState);
  EXPECT_EQ(memory.open(), Status::kOk);
  EXPECT_EQ(memory.size(), 1);
  EXPECT_EQ(other_front.clear(), Status::kOk);
  EXPECT_EQ(other_front.open(), Status::kOk);
  EXPECT_EQ(other_front.size(), 0);
}

TEST(FlashReplayMemory, reports_worn_and_broken_flash_and_continues) {
  Flash flash;
  Memory memory(flash);
  EXPECT_EQ(memory.open(), Status::kOk);
  flash.stick(0, 0x01, 0x00);  // a bit of the first page that does not erase
  int refused = 0;
  for (int number = 0; number < 8; ++number) {
    Status status = memory.add(example(number), label_of(number));
    if (status != Status::kOk) {
      ++refused;
      EXPECT_TRUE(status == Status::kNotErased || status == Status::kNotProgrammed);
      status = memory.add(example(number), label_of(number));
    }
    EXPECT_EQ(status, Status::kOk);
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(memory.size(), 8);
  EXPECT_TRUE(stored(flash) == contents(memory));
  flash.broken = true;
  Features features;
  int label = 0, length = 0;
  Rng rng(1);
  EXPECT_EQ(memory.draw(rng, features, label, length), Status::kFlashFault);
  EXPECT_EQ(memory.open(), Status::kFlashFault);
}

namespace {

/// Whether all examples whose add() answered kOk are stored, but for those that another one replaced.
bool keeps(const Contents& settled, const Contents& found) {
  for (int label = 0; label < kShape.num_classes; ++label) {
    const int* const old = settled.numbers + 2 * label;
    const int* const now = found.numbers + 2 * label;
    int missing = 0, others = 0;
    for (int i = 0; i < 2; ++i) {
      missing += old[i] >= 0 && old[i] != now[0] && old[i] != now[1];
      others += now[i] >= 0 && now[i] != old[0] && now[i] != old[1];
    }
    if (missing > others) return false;
  }
  return true;
}

/// A history of cuts; what did not hold, or nullptr.
template <class SomeFlash>
const char* run_history(std::uint32_t seed) {
  static SomeFlash flash;
  ::new (&flash) SomeFlash(seed);
  Contents settled;
  for (int& each : settled.numbers) each = -1;
  for (int session = 0, number = 0; session < 12; ++session) {
    MemoryIn<SomeFlash> memory(flash);
    if (flash.random() % 4 == 0) flash.spoil(flash.random() % 60);
    if (memory.open() != Status::kOk) return "open() opens after a cut";
    if (flash.random() % 4 != 0) flash.cut_at(flash.random() % 60);
    for (int adds = 0; adds < 8 && flash.powered() && number < 120; ++adds, ++number) {
      const Contents before = contents(memory);
      for (const int each : before.numbers) {
        if (each == -2) return "an example is read as it was stored";
      }
      if (!keeps(settled, before)) return "a stored example stays";
      if (memory.add(example(number), label_of(number)) != Status::kOk) continue;
      for (const int each : contents(memory).numbers) {
        if (each != number) continue;
        const Contents after = contents(memory);
        std::copy_n(after.numbers + 2 * label_of(number), 2, settled.numbers + 2 * label_of(number));
      }
    }
    flash.power_on();
  }
  return flash.misuses == 0 ? nullptr : "nothing is programmed that was not erased";
}

}  // namespace

TEST(FlashReplayMemory, survives_repeated_cuts_on_unsettled_flash) {
  const std::uint32_t histories = check::kDepth >= check::kFullHost    ? 1500
                                  : check::kDepth >= check::kQuickHost ? 600
                                                                       : 20;
  for (std::uint32_t seed = 1; seed <= histories; ++seed) {
    const char* failed = run_history<UnsettledFlash<NorShape{.unit = 8, .pages = 5, .page_size = 128}>>(seed);
    if (failed == nullptr)
      failed = run_history<UnsettledFlash<NorShape{.unit = 4, .pages = 8, .page_size = 128}>>(seed);
    EXPECT_STREQ(failed, nullptr) << seed;
    if (failed != nullptr) return;
  }
}
