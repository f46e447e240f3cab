#include <attune/training/schedule.hpp>

#include "check.hpp"

TEST(ConstantSchedule, is_constant) {
  constexpr attune::ConstantSchedule kSchedule{0.25f};
  static_assert(kSchedule(0) == 0.25f && kSchedule(1'000'000) == 0.25f);
  EXPECT_EQ(kSchedule(4'000'000'000u), 0.25f);
}

TEST(LinearWarmupSchedule, rises_to_its_peak_and_stays) {
  constexpr attune::LinearWarmupSchedule kSchedule{.peak = 1.0f, .warmup_steps = 4};
  EXPECT_EQ(kSchedule(0), 0.25f);
  EXPECT_EQ(kSchedule(1), 0.5f);
  EXPECT_EQ(kSchedule(2), 0.75f);
  EXPECT_EQ(kSchedule(3), 1.0f);
  EXPECT_EQ(kSchedule(4), 1.0f);
  EXPECT_EQ(kSchedule(1'000'000), 1.0f);
}

TEST(LinearWarmupSchedule, without_warm_up_is_its_peak) {
  constexpr attune::LinearWarmupSchedule kSchedule{.peak = 0.5f, .warmup_steps = 0};
  EXPECT_EQ(kSchedule(0), 0.5f);
}

TEST(CosineSchedule, falls_from_its_peak_to_its_last) {
  const attune::CosineSchedule schedule{.peak = 1.0f, .total_steps = 100, .last = 0.5f};
  EXPECT_EQ(schedule(0), 1.0f);
  EXPECT_NEAR(schedule(50), 0.75f, 2e-7f);
  EXPECT_NEAR(schedule(25), 0.5 + 0.25 * (1 + 0.70710678), 2e-7);
  EXPECT_GT(schedule(99), 0.5f);
  EXPECT_EQ(schedule(100), 0.5f);
  EXPECT_EQ(schedule(4'000'000'000u), 0.5f);
  for (std::uint32_t step = 0; step < 100; ++step) EXPECT_GE(schedule(step), schedule(step + 1));
}

TEST(CosineSchedule, warms_up_first) {
  const attune::CosineSchedule schedule{.peak = 1.0f, .total_steps = 110, .warmup_steps = 10};
  EXPECT_EQ(schedule(0), 0.1f);
  EXPECT_EQ(schedule(4), 0.5f);
  EXPECT_EQ(schedule(9), 1.0f);
  EXPECT_EQ(schedule(10), 1.0f);
  EXPECT_NEAR(schedule(60), 0.5f, 2e-7f);
  EXPECT_EQ(schedule(110), 0.0f);
}

TEST(CosineSchedule, of_no_steps_is_its_last) {
  const attune::CosineSchedule schedule{.peak = 1.0f, .total_steps = 0, .last = 0.125f};
  EXPECT_EQ(schedule(0), 0.125f);
}

TEST(CosineSchedule, has_the_same_bits_everywhere) {
  const attune::CosineSchedule schedule{
      .peak = 0.003f, .total_steps = 997, .last = 1e-5f, .warmup_steps = 50};
  check::BitHash hash;
  for (std::uint32_t step = 0; step < 1000; ++step) hash.add(schedule(step));
  EXPECT_EQ(hash.value(), check::by_policy(0x1FB9C23Eu, 0xF61F0332u));
}
