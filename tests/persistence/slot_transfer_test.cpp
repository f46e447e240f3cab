// Saves and loads in slices.
#include <attune/persistence/slot_transfer.hpp>

#include <attune/persistence/flash_store.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using attune::Status;

struct Weights {
  unsigned char bytes[101];
};
struct Settings {
  static constexpr std::uint32_t kFingerprint = 2;
  std::uint32_t count, complete;
  [[nodiscard]] Status check_saved() const { return complete == 1 ? Status::kOk : Status::kUnderWay; }
};

/// Counts what a slice asks of the driver.
struct Flash : NorFlash<NorShape{.unit = 8, .pages = 9}> {
  using Nor = NorFlash<NorShape{.unit = 8, .pages = 9}>;
  std::size_t bytes_read = 0, programs = 0, bytes_programmed = 0, pages_erased = 0;

  Status read(std::uint32_t at, void* to, std::size_t bytes) {
    bytes_read += bytes;
    return Nor::read(at, to, bytes);
  }
  Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    ++programs;
    bytes_programmed += bytes;
    return Nor::program(at, from, bytes);
  }
  Status erase(std::uint32_t at) {
    ++pages_erased;
    return Nor::erase(at);
  }
  void begin_slice() { bytes_read = programs = bytes_programmed = pages_erased = 0; }
};
using Store = attune::FlashStore<Flash, Weights, Settings>;
static_assert(Store::kSlots == 3 && Store::kHasMark);

Weights weights_of(unsigned number) {
  Weights made{};
  for (unsigned i = 0; i < sizeof made.bytes; ++i)
    made.bytes[i] = static_cast<unsigned char>(number * 31 + i * 7);
  return made;
}
Settings settings_of(unsigned number) {
  Settings made{};
  made.count = number;
  made.complete = 1;
  return made;
}
/// The number of the stored state; −1 without one, −2 for a mixture.
int stored(Flash& flash) {
  Weights weights{};
  Settings settings{};
  if (Store(flash).load(weights, settings) != Status::kOk) return -1;
  const bool whole = check::same_bits(weights, weights_of(settings.count));
  return whole ? static_cast<int>(settings.count) : -2;
}
void save(Flash& flash, unsigned number) {
  EXPECT_EQ(Store(flash).save(weights_of(number), settings_of(number)), Status::kOk);
}
/// Does at most so many slices; how many there were.
template <class Pass>
int advance(Pass& pass, int most) {
  int slices = 0;
  while (slices < most && pass.advance()) ++slices;
  return slices;
}
constexpr int kAll = 1 << 20;

Flash flash_with(unsigned number) {
  Flash flash;
  save(flash, number);
  return flash;
}
/// State 1 in flash, and the pass that saves state 2.
struct Saving {
  Flash flash = flash_with(1);
  Weights weights = weights_of(2);
  Settings settings = settings_of(2);
  Store store{flash};
  decltype(store.save_in_slices(weights, settings)) pass = store.save_in_slices(weights, settings);
};
/// body(saving) after 0, 1, 2, … slices, up to all of them.
void after_each_slice(const auto& body) {
  bool more = true;
  for (int slices = 0; more; ++slices) {
    Saving saving;
    more = advance(saving.pass, slices) == slices;
    body(saving);
  }
}

}  // namespace

TEST(SaveInSlices, a_slice_does_little_work) {
  Flash flash;
  for (unsigned number = 0; number < 5; ++number) {
    const Weights weights = weights_of(number);
    const Settings settings = settings_of(number);
    Store store(flash);
    auto pass = store.save_in_slices(weights, settings);
    EXPECT_EQ(pass.status(), Status::kUnderWay);
    for (;; flash.begin_slice()) {
      flash.begin_slice();
      if (!pass.advance()) break;
      EXPECT_LE(flash.bytes_read, 80u);
      EXPECT_LE(flash.programs + flash.pages_erased, 1u);
      EXPECT_LE(flash.bytes_programmed, Flash::kProgramUnit);
    }
    EXPECT_TRUE(pass.done());
    EXPECT_EQ(pass.status(), Status::kOk);
    EXPECT_EQ(stored(flash), static_cast<int>(number));
  }
  EXPECT_EQ(flash.misuses, 0u);
}

TEST(SaveInSlices, writes_the_bytes_of_a_save) {
  Flash flash, other;
  Store store(other);
  for (unsigned number = 0; number < 5; ++number) {
    save(flash, number);
    const Weights weights = weights_of(number);
    const Settings settings = settings_of(number);
    auto pass = store.save_in_slices(weights, settings);
    (void)advance(pass, kAll);
    EXPECT_EQ(pass.status(), Status::kOk);
    EXPECT_EQ(std::memcmp(&flash.byte(0), &other.byte(0), Flash::kSize), 0);
  }
}

TEST(SaveInSlices, a_reset_between_two_slices_leaves_the_old_state_or_the_new_one) {
  int old_states = 0, new_states = 0;
  after_each_slice([&](Saving& saving) {
    const int state = stored(saving.flash);
    EXPECT_TRUE(state == 2 || (state == 1 && !saving.pass.done()));
    ++(state == 1 ? old_states : new_states);
    save(saving.flash, 3);
    EXPECT_EQ(stored(saving.flash), 3);
  });
  EXPECT_GT(old_states, 30);
  EXPECT_GT(new_states, 0);
}

TEST(SaveInSlices, other_calls_wait_for_its_end_or_for_a_discard) {
  Saving saving;
  auto& [flash, weights, settings, store, pass] = saving;
  (void)advance(pass, 30);
  EXPECT_EQ(store.save(weights, settings), Status::kUnderWay);
  EXPECT_EQ(store.load(weights, settings), Status::kUnderWay);
  auto second = store.save_in_slices(weights, settings);
  EXPECT_TRUE(second.done());
  EXPECT_FALSE(second.advance());
  EXPECT_EQ(second.status(), Status::kUnderWay);
  EXPECT_FALSE(pass.done());
  store.discard();
  EXPECT_TRUE(pass.done());
  EXPECT_FALSE(pass.advance());
  EXPECT_EQ(pass.status(), Status::kUnderWay);
  EXPECT_EQ(stored(flash), 1);
  EXPECT_EQ(store.save(weights, settings), Status::kOk);
  EXPECT_FALSE(pass.advance());
  EXPECT_EQ(stored(flash), 2);
}

TEST(SaveInSlices, a_record_that_changes_during_a_save_is_not_half_saved) {
  int refused = 0, saved = 0;
  after_each_slice([&](Saving& saving) {
    saving.weights = weights_of(3);
    saving.settings = settings_of(3);
    (void)advance(saving.pass, kAll);
    const bool is_saved = saving.pass.status() == Status::kOk;
    EXPECT_TRUE(is_saved || saving.pass.status() == Status::kChangedDuringSave);
    const int state = stored(saving.flash);
    EXPECT_TRUE(is_saved ? state == 2 || state == 3 : state == 1);
    ++(is_saved ? saved : refused);
    EXPECT_EQ(saving.store.save(saving.weights, saving.settings), Status::kOk);
    EXPECT_EQ(stored(saving.flash), 3);
  });
  EXPECT_GT(refused, 10);
  EXPECT_GT(saved, 10);
}

TEST(SaveInSlices, an_incomplete_update_is_refused_at_the_start_and_at_the_end) {
  Saving saving;
  auto& [flash, weights, settings, store, pass] = saving;
  (void)advance(pass, 20);
  settings.complete = 0;
  (void)advance(pass, kAll);
  EXPECT_EQ(pass.status(), Status::kUnderWay);
  EXPECT_TRUE(pass.done());
  EXPECT_EQ(stored(flash), 1);
  EXPECT_TRUE(store.save_in_slices(weights, settings).done());
  EXPECT_EQ(store.save(weights, settings), Status::kUnderWay);
}

TEST(SaveInSlices, a_driver_that_fails_ends_it_and_leaves_the_old_state) {
  after_each_slice([](Saving& saving) {
    if (saving.pass.done()) return;
    saving.flash.broken = true;
    (void)advance(saving.pass, kAll);
    EXPECT_EQ(saving.pass.status(), Status::kFlashFault);
    saving.flash.broken = false;
    const int state = stored(saving.flash);
    EXPECT_TRUE(state == 1 || state == 2);
    EXPECT_EQ(saving.store.save(weights_of(3), settings_of(3)), Status::kOk);
    EXPECT_EQ(stored(saving.flash), 3);
  });
}

TEST(SaveInSlices, another_store_may_save_into_the_same_flash_meanwhile) {
  int lost_races = 0;
  after_each_slice([&](Saving& saving) {
    const bool was_done = saving.pass.done();
    save(saving.flash, 3);
    (void)advance(saving.pass, kAll);
    const int state = stored(saving.flash);
    EXPECT_TRUE(state == 3 || (state == 2 && saving.pass.status() == Status::kOk && !was_done));
    lost_races += saving.pass.status() != Status::kOk;
    EXPECT_EQ(saving.flash.misuses, 0u);
  });
  EXPECT_GT(lost_races, 10);
}

TEST(LoadInSlices, loads_the_same_state_as_load) {
  Flash flash;
  Store store(flash);
  Weights weights = weights_of(9);
  Settings settings = settings_of(9);
  auto nothing = store.load_in_slices(weights, settings);
  (void)advance(nothing, kAll);
  EXPECT_EQ(nothing.status(), Status::kNothingStored);
  EXPECT_EQ(settings.count, 9u);
  save(flash, 4);
  auto pass = store.load_in_slices(weights, settings);
  EXPECT_EQ(store.save(weights, settings), Status::kUnderWay);
  flash.begin_slice();
  while (pass.advance()) {
    EXPECT_LE(flash.bytes_read, 80u);
    flash.begin_slice();
  }
  EXPECT_EQ(pass.status(), Status::kOk);
  EXPECT_TRUE(check::same_bits(weights, weights_of(4)));
  EXPECT_EQ(settings.count, 4u);
}

TEST(LoadInSlices, a_driver_that_fails_leaves_the_records_or_zeros) {
  int zeros = 0, left = 0;
  bool more = true;
  for (int slices = 0; more; ++slices) {
    Flash flash;
    save(flash, 1);
    Weights weights = weights_of(9);
    Settings settings = settings_of(9);
    Store store(flash);
    auto pass = store.load_in_slices(weights, settings);
    more = advance(pass, slices) == slices;
    if (pass.done()) break;
    flash.broken = true;
    (void)advance(pass, kAll);
    EXPECT_EQ(pass.status(), Status::kFlashFault);
    const bool is_zero = check::same_bits(weights, Weights{}) && settings.count == 0;
    const bool is_left = check::same_bits(weights, weights_of(9)) && settings.count == 9;
    EXPECT_TRUE(is_zero || is_left);
    ++(is_zero ? zeros : left);
  }
  EXPECT_GT(zeros, 0);
  EXPECT_GT(left, 10);
}
