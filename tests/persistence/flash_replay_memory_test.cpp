// A replay memory in flash whose power is cut at any operation.
#include <attune/persistence/flash_replay_memory.hpp>

#include <new>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "persistence/replay_history.hpp"

namespace {

using attune::Rng;
using attune::Status;

using namespace replay_history;
using Flash = NorFlash<NorShape{.unit = 8, .pages = 9, .page_size = 128}>;
using Memory = MemoryIn<Flash>;
static_assert(Memory::kBlockPages == 1 && Memory::kBlockEntries == 2 && Memory::kBlocks == 4 &&
              Memory::kSlots == 9);

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
  attune::FlashReplayMemory<Flash, Features, attune::ReplayShape{.capacity = 8, .num_classes = 2}>
      other_classes(flash, {.base_crc = 5});
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

template <NorShape shape>
const char* failure_of(std::uint32_t seed) {
  bool undecidable = false;
  const char* const failed = replay_history::run<UnsettledFlash<shape>>(seed, undecidable);
  return undecidable && failed == replay_history::kLost ? nullptr : failed;
}

}  // namespace

TEST(FlashReplayMemory, erases_neither_of_two_doubtful_versions) {
  Flash flash;
  Memory memory(flash);
  EXPECT_EQ(memory.open(), Status::kOk);
  EXPECT_EQ(memory.add(example(0), 0), Status::kOk);  // block 0, in slot 0
  EXPECT_EQ(memory.add(example(4), 0), Status::kOk);  // and slot 1
  const Contents before = stored(flash);
  // A mark that reads as erased. A cut of the mark may be the cause, so that the next add began to erase slot
  // 0, or one before the mark. Either version may therefore vanish.
  constexpr std::uint32_t kMark = 32 + 2 * 32;
  static_assert(sizeof(attune::detail::ReplayHead) <= 32 && sizeof(Memory::Entry) + 4 <= 32);
  for (std::uint32_t i = 0; i < 8; ++i) flash.byte(128 + kMark + i) = 0xFF;
  EXPECT_EQ(stored(flash).numbers[0], 0);
  for (std::uint32_t vanished = 0; vanished < 2; ++vanished) {
    Flash later = flash;
    Memory next(later);
    EXPECT_EQ(next.open(), Status::kOk);
    EXPECT_EQ(next.add(example(1), 1), Status::kOk);
    EXPECT_EQ(next.writes(), 4u);
    for (std::uint32_t i = 0; i < 128; ++i) later.byte(vanished * 128 + i) = 0xFF;
    const Contents found = stored(later);
    EXPECT_TRUE(found.numbers[0] == before.numbers[0] && found.numbers[2] == 1);
    EXPECT_EQ(later.misuses, 0u);
  }
}

TEST(FlashReplayMemory, erases_the_oldest_of_three_versions_first) {
  // The history's marks: the youngest of three versions was cut in its mark, which a later start found
  // erased.
  EXPECT_TRUE((failure_of<NorShape{.unit = 4, .pages = 8, .page_size = 128}>(53952)) == nullptr);
}

TEST(FlashReplayMemory, survives_repeated_cuts_on_unsettled_flash) {
  const std::uint32_t histories = check::kDepth >= check::kFullHost    ? 1500
                                  : check::kDepth >= check::kQuickHost ? 600
                                                                       : 20;
  for (std::uint32_t seed = 1; seed <= histories; ++seed) {
    const char* failed = failure_of<NorShape{.unit = 8, .pages = 5, .page_size = 128}>(seed);
    if (failed == nullptr) failed = failure_of<NorShape{.unit = 4, .pages = 8, .page_size = 128}>(seed);
    EXPECT_TRUE(failed == nullptr) << seed;
    if (failed != nullptr) return;
  }
}
