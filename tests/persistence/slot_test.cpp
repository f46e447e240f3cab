// Slots that are in doubt: states that cannot be read for a while, and numbers that cannot be compared.
#include <attune/persistence/slot.hpp>

#include <attune/persistence/flash_store.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using attune::FlashStore;
using attune::Status;
using attune::detail::SlotHead;

struct Record {
  static constexpr std::uint32_t kFingerprint = 3;
  std::uint32_t number;
};
template <std::uint32_t pages>
using Flash = NorFlash<NorShape{.unit = 8, .pages = pages}>;

template <class Flash>
Status save(Flash& flash, std::uint32_t number) {
  return FlashStore<Flash, Record>(flash).save(Record{number});
}
template <class Flash>
int stored(Flash& flash) {
  Record record{};
  const Status status = FlashStore<Flash, Record>(flash).load(record);
  return status == Status::kOk ? static_cast<int>(record.number) : -1;
}
/// A bit of the head of a state reads wrong, or right again.
template <class Flash>
void flip(Flash& flash, std::uint32_t slot) {
  flash.byte(slot * Flash::kPageSize + 20) ^= 1;
}
template <class Flash>
void set_sequence(Flash& flash, std::uint32_t slot, std::uint32_t sequence) {
  SlotHead head;
  std::memcpy(&head, &flash.byte(slot * Flash::kPageSize), sizeof head);
  head.sequence = sequence;
  head.crc = head.own_crc();
  std::memcpy(&flash.byte(slot * Flash::kPageSize), &head, sizeof head);
}

}  // namespace

TEST(Slot, states_that_cannot_be_read_for_a_while_are_not_newer_than_a_later_one) {
  Flash<3> flash;
  for (std::uint32_t number = 5; number < 8; ++number) EXPECT_EQ(save(flash, number), Status::kOk);
  flip(flash, 1);
  flip(flash, 2);
  EXPECT_EQ(save(flash, 8), Status::kOk);
  EXPECT_EQ(stored(flash), 8);
  flip(flash, 2);
  EXPECT_EQ(stored(flash), 8);
  EXPECT_EQ(flash.misuses, 0u);
}

TEST(Slot, of_two_slots_a_newer_state_that_cannot_be_read_is_reported_before_it_is_erased) {
  Flash<2> flash;
  EXPECT_EQ(save(flash, 5), Status::kOk);
  EXPECT_EQ(save(flash, 6), Status::kOk);
  flip(flash, 1);
  EXPECT_EQ(stored(flash), 5);
  EXPECT_EQ(save(flash, 7), Status::kUnreadable);
  flip(flash, 1);
  EXPECT_EQ(stored(flash), 6);
  flip(flash, 1);
  FlashStore<Flash<2>, Record> store(flash);
  EXPECT_EQ(store.save(Record{8}), Status::kUnreadable);
  EXPECT_EQ(store.save(Record{8}), Status::kOk);
  EXPECT_EQ(stored(flash), 8);
}

TEST(Slot, one_wrong_read_and_a_cut_leave_the_last_state_that_was_saved) {
  int saves_cut = 0;
  for (const Status answer : {Status::kOk, Status::kUnreadable}) {
    for (std::uint32_t read = 0; read < 120; ++read) {
      for (std::uint32_t operation = 0; operation < 4; ++operation) {
        Flash<2> flash;
        for (std::uint32_t number = 1; number < 4; ++number) EXPECT_EQ(save(flash, number), Status::kOk);
        flash.reads = 0;
        flash.spoilt_read = read;
        flash.spoilt_answer = answer;
        flash.cut_at(operation, Tear::kRandomBits);
        saves_cut += save(flash, 4) == Status::kFlashFault;
        flash.power_on();
        EXPECT_EQ(stored(flash), 3);
      }
    }
  }
  EXPECT_GT(saves_cut, 500);
}

TEST(Slot, numbers_that_cannot_be_compared_are_refused_and_nothing_is_erased) {
  for (const std::uint32_t apart : {0x8000'0000u, 0x7FFF'FFFFu}) {
    for (const std::uint32_t first : {0u, 0xFFFF'FFF0u, 0x8000'0000u}) {
      Flash<3> flash;
      EXPECT_EQ(save(flash, 1), Status::kOk);
      EXPECT_EQ(save(flash, 2), Status::kOk);
      set_sequence(flash, 0, first);
      set_sequence(flash, 1, first + apart);
      const bool comparable = apart < 0x8000'0000u;
      Record record{9};
      FlashStore<Flash<3>, Record> store(flash);
      EXPECT_EQ(store.load(record), comparable ? Status::kOk : Status::kUnreadable);
      EXPECT_EQ(record.number, comparable ? 2u : 9u);
      if (comparable) continue;
      flash.cut_at(0, Tear::kNotDone);
      EXPECT_EQ(store.save(Record{3}), Status::kUnreadable);
      EXPECT_TRUE(flash.powered());
    }
  }
}

TEST(Slot, three_numbers_around_the_circle_are_refused) {
  Flash<3> flash;
  for (std::uint32_t number = 1; number < 4; ++number) EXPECT_EQ(save(flash, number), Status::kOk);
  for (std::uint32_t slot = 0; slot < 3; ++slot) set_sequence(flash, slot, slot * 0x6000'0000u);
  Record record{9};
  EXPECT_EQ((FlashStore<Flash<3>, Record>(flash).load(record)), Status::kUnreadable);
  EXPECT_EQ(record.number, 9u);
}

TEST(Slot, a_state_without_its_mark_is_loaded_only_as_the_last_resort) {
  Flash<2> flash;
  EXPECT_EQ(save(flash, 1), Status::kOk);
  for (const std::uint32_t number : {2u, 3u}) {
    flash.cut_at(1 + 1 + 1 + 1 + 3 + 1, Tear::kNotDone);  // page, sync, body, sync, head, sync
    EXPECT_EQ(save(flash, number), Status::kFlashFault);
    flash.power_on();
    EXPECT_EQ(stored(flash), 1);
  }
  EXPECT_EQ(flash.erase(0), Status::kOk);
  EXPECT_EQ(stored(flash), 3);
}

TEST(Slot, the_next_number_of_a_marked_state_is_newer_and_ends_as_all_of_them) {
  using attune::detail::next_marked;
  static_assert(next_marked(0) == 0xFFF1 && next_marked(0xFFF0) == 0xFFF1);
  static_assert(next_marked(0xFFF1) == 0x1'FFF1 && next_marked(0xFFF2) == 0x1'FFF1);
  static_assert(next_marked(0xFFFF'FFF1) == 0xFFF1 && next_marked(0xFFFF'FFFF) == 0xFFF1);
  for (const std::uint32_t number : {0u, 0xFFF0u, 0xFFF1u, 0x7FFF'FFF1u, 0x7FFF'FFFFu, 0xFFFF'FFFEu}) {
    EXPECT_TRUE(attune::detail::needs_mark(next_marked(number)));
    EXPECT_TRUE(attune::detail::newer(next_marked(number), number));
  }
}

TEST(Slot, states_of_version_1_0_are_complete_without_a_mark) {
  Flash<3> flash;
  for (std::uint32_t number = 1; number < 4; ++number) EXPECT_EQ(save(flash, number), Status::kOk);
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    set_sequence(flash, slot, slot + 7);
    std::memset(&flash.byte(slot * Flash<3>::kPageSize + 32), 0xFF, 8);
  }
  EXPECT_EQ(stored(flash), 3);
  EXPECT_EQ(save(flash, 4), Status::kOk);
  EXPECT_EQ(stored(flash), 4);
}
