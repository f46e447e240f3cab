#include <attune/core/sine_table.hpp>

#include "check.hpp"

namespace kernels = attune::kernels;

TEST(SineTable, has_the_known_sines_and_cosines) {
  static_assert(attune::detail::cosine_sine(0).cosine == 1 && attune::detail::cosine_sine(0).sine == 0);
  constexpr attune::detail::CosineSine one = attune::detail::cosine_sine(1.0);
  EXPECT_NEAR(one.cosine, 0.54030230586813972, 1e-15);
  EXPECT_NEAR(one.sine, 0.84147098480789651, 1e-15);
  constexpr attune::detail::CosineSine far = attune::detail::cosine_sine(1000.0);
  EXPECT_NEAR(far.cosine, 0.56237907629070260, 1e-15);
  EXPECT_NEAR(far.sine, 0.82687954053200256, 1e-15);
  EXPECT_NEAR(attune::detail::inverse_power(10'000, 0.5), 0.01, 1e-17);
  EXPECT_NEAR(attune::detail::inverse_power(10'000, 1.0 / 3), 0.046415888336127789, 2.4e-17);
  static_assert(attune::detail::inverse_power(10'000, 0) == 1);
}

// Llama 3.2: rope_theta 500000, heads of 64 features, factor 32. Numbers of the formula in Python.
TEST(SineTable, scaled_frequencies_are_llama_3s) {
  constexpr attune::RotaryScaling kScaling{
      .factor = 32, .low_frequency_factor = 1, .high_frequency_factor = 4, .original_length = 8192};
  const auto frequency = [&](int i) { return attune::detail::angular_frequency(500'000, 64, i, kScaling); };
  const auto unscaled = [](int i) { return attune::detail::angular_frequency(500'000, 64, i); };
  EXPECT_EQ(frequency(0), unscaled(0));
  EXPECT_EQ(frequency(14), unscaled(14));
  EXPECT_NEAR(frequency(15), 0.0012905479282092638, 1e-17);
  EXPECT_NEAR(frequency(17), 9.708287802627676e-05, 1e-18);
  EXPECT_EQ(frequency(18), unscaled(18) / 32);
  EXPECT_EQ(frequency(31), unscaled(31) / 32);
}

TEST(SineTable, positions_of_a_stream_have_the_bits_of_a_table) {
  static constexpr auto table = [] {
    attune::detail::SineTable<double, 70, 3> filled{};
    fill(filled, 10'000, 6);
    return filled;
  }();
  static constexpr auto frequencies = attune::detail::frequencies<3>(10'000, 6);
  attune::detail::AnglesOfPosition<3> angles = {};
  const auto expect = [&](int position) {
    angles.move_to(static_cast<std::uint64_t>(position), frequencies);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(check::same_bits(angles.of[i].cosine, table.cosine(position, i)));
      EXPECT_TRUE(check::same_bits(angles.of[i].sine, table.sine(position, i)));
    }
  };
  for (int position = 0; position < 70; ++position) expect(position);
  for (const int position : {21, 21, 22, 5, 31, 32, 34, 33, 16, 0, 69})
    expect(position);  // back, and over some
}

TEST(SineTable, adding_angles_loses_nothing_that_shows) {
  static constexpr auto table = [] {
    attune::detail::SineTable<double, 40, 3> filled{};
    fill(filled, 10'000, 6);
    return filled;
  }();
  for (int t = 0; t < 40; ++t) {
    for (int i = 0; i < 3; ++i) {
      const auto exact = attune::detail::cosine_sine(t * attune::detail::inverse_power(10'000, i / 3.0));
      EXPECT_NEAR(table.cosine(t, i), exact.cosine, 5e-15);
      EXPECT_NEAR(table.sine(t, i), exact.sine, 5e-15);
    }
  }
}
