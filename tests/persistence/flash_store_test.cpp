// The store on a flash of some pages of 64 bytes; tests/fuzz/power_cuts.cpp cuts the power of every kind.
#include <attune/persistence/flash_store.hpp>

#include <initializer_list>

#include "check.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using attune::FlashStore;
using attune::Status;

struct Weights {
  float values[13];
};
struct Settings {
  char name[7];
};
struct First {
  static constexpr std::uint32_t kFingerprint = 7;
  int value;
};
struct Second {
  static constexpr std::uint32_t kFingerprint = 8;
  int value;
};
using Flash = NorFlash<NorShape{.unit = 8, .pages = 6}>;  // slots of two pages
using Store = FlashStore<Flash, Weights, Settings>;
static_assert(Store::kSlotPages == 2 && Store::kSlots == 3 && Store::kBodySize == 56 + 8);

template <class Record>
Record record(unsigned seed) {
  Record made{};
  auto* const bytes = reinterpret_cast<unsigned char*>(&made);
  for (std::size_t i = 0; i < sizeof made; ++i) bytes[i] = static_cast<unsigned char>(seed * 29 + i * 7 + 1);
  return made;
}

template <class Flash>
Status save(Flash& flash, unsigned seed) {
  FlashStore<Flash, Weights, Settings> store(flash);
  return store.save(record<Weights>(seed), record<Settings>(seed));
}

/// The seed of the state that is loaded by a store of its own, below 100; −1 where nothing is stored, −2
/// where that changed the records, −3 for anything else.
template <class Flash>
int stored(Flash& flash) {
  auto weights = record<Weights>(200);
  auto settings = record<Settings>(200);
  const Status status = FlashStore<Flash, Weights, Settings>(flash).load(weights, settings);
  if (status == Status::kNothingStored) {
    const bool same =
        check::same_bits(weights, record<Weights>(200)) && check::same_bits(settings, record<Settings>(200));
    return same ? -1 : -2;
  }
  for (unsigned seed = 0; status == Status::kOk && seed < 100; ++seed) {
    if (check::same_bits(weights, record<Weights>(seed)) &&
        check::same_bits(settings, record<Settings>(seed)))
      return static_cast<int>(seed);
  }
  return -3;
}

template <class Flash>
void expect_keeps_states() {
  Flash flash;
  EXPECT_EQ(stored(flash), -1);
  for (unsigned seed = 0; seed < 7; ++seed) {
    EXPECT_EQ(save(flash, seed), Status::kOk);
    EXPECT_EQ(stored(flash), static_cast<int>(seed));
  }
  EXPECT_EQ(flash.misuses, 0u);
}

template <class... Records>
void expect_keeps(const Records&... records) {
  using Words = NorFlash<NorShape{.unit = 4, .pages = 10}>;
  Words flash;
  FlashStore<Words, Records...> store(flash);
  const auto expect_loaded = [&](Records... loaded) {
    (std::memset(static_cast<void*>(&loaded), 0x55, sizeof loaded), ...);
    EXPECT_EQ(store.load(loaded...), Status::kOk);
    EXPECT_TRUE((check::same_bits(loaded, records) && ...));
  };
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(store.save(records...), Status::kOk);
    expect_loaded(records...);
    expect_loaded(records...);
  }
  EXPECT_EQ(flash.misuses, 0u);
}

}  // namespace

TEST(FlashStore, loads_the_last_saved_state) { expect_keeps_states<Flash>(); }

TEST(FlashStore, takes_program_units_of_one_to_32_bytes_and_either_erased_byte) {
  expect_keeps_states<NorFlash<NorShape{.unit = 1, .pages = 4}>>();
  expect_keeps_states<NorFlash<NorShape{.unit = 32, .pages = 6, .erased = 0x00}>>();
}

TEST(FlashStore, needs_two_program_units_and_304_bytes_of_ram) {
  constexpr std::size_t kWiderPointers = (sizeof(void*) - 4) * 8;
  static_assert(Store::kRam <= 2 * 16 + 304 + kWiderPointers);
  static_assert(FlashStore<NorFlash<NorShape{.unit = 1, .pages = 4}>, Weights>::kRam <=
                2 * 16 + 304 + kWiderPointers);
  static_assert(FlashStore<NorFlash<NorShape{.unit = 32, .pages = 6}>, Weights>::kRam <=
                2 * 32 + 304 + kWiderPointers);
  static_assert(sizeof(Store) <= 2 * sizeof(void*));
}

TEST(FlashStore, alternates_between_all_slots) {
  Flash flash;
  for (unsigned seed = 0; seed < 3; ++seed) {
    const auto next = [&flash](std::uint32_t slot) {
      return flash.byte(slot * 2 * Flash::kPageSize) == 0xFF;
    };
    EXPECT_TRUE(next(seed));
    EXPECT_EQ(save(flash, seed), Status::kOk);
    EXPECT_FALSE(next(seed));
  }
}

TEST(FlashStore, keeps_the_old_state_until_the_new_one_is_whole) {
  for (int tear = 0; tear < kTears; ++tear) {
    bool cut = true;
    for (std::uint32_t operation = 0; cut; ++operation) {
      Flash flash(operation + 1);
      EXPECT_EQ(save(flash, 1), Status::kOk);
      EXPECT_EQ(save(flash, 2), Status::kOk);
      flash.cut_at(operation, static_cast<Tear>(tear));
      const Status status = save(flash, 3);
      cut = !flash.powered();
      flash.power_on();
      const int state = stored(flash);
      EXPECT_TRUE(state == 2 || state == 3);
      EXPECT_TRUE(status == Status::kOk ? state == 3 : cut);
      EXPECT_EQ(save(flash, 4), Status::kOk);
      EXPECT_EQ(stored(flash), 4);
      EXPECT_EQ(flash.misuses, 0u);
    }
  }
}

TEST(FlashStore, keeps_nothing_until_the_first_state_is_whole) {
  int states[2] = {}, state = 0;
  std::uint32_t operation = 0;
  for (bool cut = true; cut; ++states[state == 1]) {
    Flash flash;
    flash.cut_at(operation++, Tear::kUnreadable);
    const Status status = save(flash, 1);
    cut = !flash.powered();
    EXPECT_EQ(status == Status::kOk, !cut);
    flash.power_on();
    state = stored(flash);
    EXPECT_TRUE(state == 1 || (cut && state == -1));
  }
  EXPECT_GT(states[0], 10);
}

TEST(FlashStore, finds_the_newest_state_before_it_saves_without_a_load) {
  Flash flash;
  for (const unsigned seed : {1u, 2u}) EXPECT_EQ(save(flash, seed), Status::kOk);
  flash.cut_at(3, Tear::kNotDone);
  EXPECT_EQ(save(flash, 3), Status::kFlashFault);
  flash.power_on();
  EXPECT_EQ(stored(flash), 2);
}

TEST(FlashStore, refuses_a_state_of_other_types_and_saves_over_it) {
  Flash flash;
  EXPECT_EQ(save(flash, 1), Status::kOk);
  struct Grown {
    float values[40];
  };
  auto grown = record<Grown>(5);
  FlashStore<Flash, Grown> after_update(flash);  // slots of three pages
  static_assert(FlashStore<Flash, Grown>::kSlotPages == 3);
  EXPECT_EQ(after_update.load(grown), Status::kOtherState);
  EXPECT_TRUE(check::same_bits(grown, record<Grown>(5)));
  flash.cut_at(4, Tear::kRandomBits);
  EXPECT_EQ(after_update.save(grown), Status::kFlashFault);
  flash.power_on();
  EXPECT_EQ(stored(flash), 1);  // the update may be taken back
  EXPECT_EQ(after_update.save(grown), Status::kOk);
  grown = {};
  EXPECT_EQ(after_update.load(grown), Status::kOk);
  EXPECT_TRUE(check::same_bits(grown, record<Grown>(5)));
  // The other way: the newest is of other types, though an own state is there.
  EXPECT_EQ(stored(flash), -3);
  EXPECT_EQ(save(flash, 2), Status::kOk);
  EXPECT_EQ(stored(flash), 2);
}

TEST(FlashStore, distinguishes_types_by_fingerprint_size_and_order) {
  static_assert(attune::kFingerprintOf<First> == 7);
  Flash flash;
  First first{3};
  Second second{4};
  short number = 0;
  const auto load = [&flash](auto&... records) {
    return FlashStore<Flash, std::remove_reference_t<decltype(records)>...>(flash).load(records...);
  };
  EXPECT_EQ((FlashStore<Flash, First, Second>(flash).save(first, second)), Status::kOk);
  EXPECT_EQ(load(second, first), Status::kOtherState);
  EXPECT_EQ(load(first), Status::kOtherState);
  EXPECT_EQ(load(first, second, number), Status::kOtherState);
  EXPECT_EQ(load(first, second), Status::kOk);
}

TEST(FlashStore, takes_records_of_any_size) {
  struct Empty {};
  struct Odd {
    char bytes[61];
  };
  struct Page {
    char bytes[64];
  };
  struct Rest {
    char bytes[64 - 24];
  };
  expect_keeps();
  expect_keeps(Empty{});
  expect_keeps('a');
  expect_keeps(record<Odd>(1), 'b', record<Odd>(2));
  expect_keeps(record<Page>(1));
  expect_keeps(record<Rest>(1));
  using Small = NorFlash<NorShape{.unit = 4, .pages = 2}>;
  static_assert(FlashStore<Small, Rest>::kSlots == 2 && FlashStore<Small>::kSlots == 2);
}

TEST(FlashStore, starts_on_flash_with_other_contents) {
  for (const int byte : {0x00, 0xFF, 0x5A}) {
    Flash flash;
    flash.fill(static_cast<unsigned char>(byte));
    EXPECT_EQ(stored(flash), -1);
    EXPECT_EQ(save(flash, 1), Status::kOk);
    EXPECT_EQ(stored(flash), 1);
  }
}

TEST(FlashStore, ignores_the_size_in_a_damaged_head) {
  Flash flash;
  EXPECT_EQ(save(flash, 1), Status::kOk);
  attune::detail::SlotHead head;
  std::memcpy(&head, &flash.byte(0), sizeof head);
  for (const std::uint32_t size :
       std::initializer_list<std::uint32_t>{0, 1, Flash::kSize - 23, 0x8000'0000, 0xFFFF'FFFF}) {
    head.size = size;
    head.crc = head.own_crc();
    std::memcpy(&flash.byte(0), &head, sizeof head);
    EXPECT_EQ(stored(flash), -1);
    EXPECT_EQ(flash.misuses, 0u);
  }
}

TEST(FlashStore, survives_a_wrap_of_the_sequence_number) {
  Flash flash;
  EXPECT_EQ(save(flash, 0), Status::kOk);
  attune::detail::SlotHead head;
  std::memcpy(&head, &flash.byte(0), sizeof head);
  head.sequence = 0xFFFF'FFFEu;
  head.crc = head.own_crc();
  std::memcpy(&flash.byte(0), &head, sizeof head);
  for (unsigned seed = 1; seed < 6; ++seed) {
    EXPECT_EQ(save(flash, seed), Status::kOk);
    EXPECT_EQ(stored(flash), static_cast<int>(seed));
  }
}

TEST(FlashStore, returns_a_drivers_fault_and_changes_nothing) {
  Flash flash;
  EXPECT_EQ(save(flash, 1), Status::kOk);
  auto weights = record<Weights>(9);
  auto settings = record<Settings>(9);
  Store store(flash);
  flash.broken = true;
  EXPECT_EQ(store.load(weights, settings), Status::kFlashFault);
  EXPECT_EQ(store.save(weights, settings), Status::kFlashFault);
  EXPECT_TRUE(check::same_bits(weights, record<Weights>(9)) &&
              check::same_bits(settings, record<Settings>(9)));
  flash.broken = false;
  EXPECT_EQ(stored(flash), 1);
}

TEST(FlashStore, finds_bits_that_are_stuck_and_keeps_the_old_state) {
  int not_erased = 0, not_programmed = 0;
  for (std::uint32_t at = 128; at < 128 + 24 + Store::kBodySize; ++at) {
    for (const unsigned char value : {static_cast<unsigned char>(0x00), static_cast<unsigned char>(0xFF)}) {
      Flash flash;
      EXPECT_EQ(save(flash, 1), Status::kOk);
      flash.stick(at, 0x20, value);
      const Status status = save(flash, 2);
      not_erased += status == Status::kNotErased;
      not_programmed += status == Status::kNotProgrammed;
      // A bit that is stuck at what it is to be does no harm.
      EXPECT_EQ(stored(flash), status == Status::kOk ? 2 : 1);
      EXPECT_TRUE(value != 0 || status == Status::kNotErased);
    }
  }
  EXPECT_GT(not_erased, 0);
  EXPECT_GT(not_programmed, 20);
}

TEST(FlashStore, takes_another_slot_after_a_failure) {
  Flash flash;
  Store store(flash);
  EXPECT_EQ(store.save(record<Weights>(1), record<Settings>(1)), Status::kOk);
  flash.stick(130, 0x20, 0);
  EXPECT_EQ(store.save(record<Weights>(2), record<Settings>(2)), Status::kNotErased);
  EXPECT_EQ(store.save(record<Weights>(3), record<Settings>(3)), Status::kOk);
  EXPECT_EQ(stored(flash), 3);
}

TEST(FlashStore, loads_the_newest_state_if_one_read_fails) {
  for (const Status answer : {Status::kOk, Status::kUnreadable, Status::kFlashFault}) {
    for (std::uint32_t read = 0; read < 80; ++read) {
      Flash flash;
      EXPECT_EQ(save(flash, 1), Status::kOk);
      EXPECT_EQ(save(flash, 2), Status::kOk);
      flash.reads = 0;
      flash.spoilt_read = read;
      flash.spoilt_answer = answer;
      auto weights = record<Weights>(9);
      auto settings = record<Settings>(9);
      const Status status = Store(flash).load(weights, settings);
      // A fault while looking is not taken for an old state.
      const unsigned seed = status == Status::kOk ? 2 : 9;
      EXPECT_TRUE(status == Status::kOk || (answer == Status::kFlashFault && status == answer));
      EXPECT_TRUE(check::same_bits(weights, record<Weights>(seed)));
      EXPECT_TRUE(check::same_bits(settings, record<Settings>(seed)));
    }
  }
}

TEST(FlashStore, takes_an_older_state_if_the_newest_cannot_be_copied) {
  int older = 0, newest = 0;
  for (std::uint32_t seed = 1; seed < 200; ++seed) {
    Flash flash(seed);
    EXPECT_EQ(save(flash, 1), Status::kOk);
    EXPECT_EQ(save(flash, 2), Status::kOk);
    flash.flicker(2 * Flash::kPageSize + 30, 7);
    const int state = stored(flash);
    EXPECT_TRUE(state == 1 || state == 2);
    ++(state == 1 ? older : newest);
  }
  EXPECT_GT(older, 10);
  EXPECT_GT(newest, 10);
}

TEST(FlashStore, leaves_zeros_if_no_state_can_be_copied) {
  int zeroed = 0;
  for (std::uint32_t seed = 1; seed < 200; ++seed) {
    Flash flash(seed);
    EXPECT_EQ(save(flash, 1), Status::kOk);
    flash.flicker(30, 7);
    auto weights = record<Weights>(9);
    auto settings = record<Settings>(9);
    const Status status = Store(flash).load(weights, settings);
    if (status != Status::kUnreadable) continue;
    ++zeroed;
    EXPECT_TRUE(check::same_bits(weights, Weights{}) && check::same_bits(settings, Settings{}));
  }
  EXPECT_GT(zeroed, 10);
}
