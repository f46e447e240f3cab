#include <attune/layers/positions.hpp>

#include <attune/execution/stream.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using attune::PositionShape;

constexpr PositionShape kShape{.seq_len = 40, .d_model = 6};
using Sinusoidal = attune::SinusoidalPositions<kShape>;

}  // namespace

// Gradients: transformer_gradients_test.cpp.

TEST(SinusoidalPositions, interleave_sines_and_cosines_of_falling_frequency) {
  static const Sinusoidal::Input zeros{};
  Sinusoidal::Output y;
  Sinusoidal::InferenceScratch scratch;
  Sinusoidal::forward({}, zeros, y, scratch);
  EXPECT_EQ(y(0, 0), 0.0f);
  EXPECT_EQ(y(0, 1), 1.0f);
  EXPECT_NEAR(y(3, 0), 0.14112000805986721, 1e-8);   // sin 3
  EXPECT_NEAR(y(3, 1), -0.98999249660044542, 6e-8);  // cos 3
  EXPECT_NEAR(y(39, 5), 0.99647214793569456, 6e-8);  // cos(39·10000^(−2/3))
  EXPECT_TRUE(check::same_bits(y, Sinusoidal::kVectors));
}

TEST(SinusoidalPositions, of_an_odd_width_end_with_a_sine) {
  using Odd = attune::SinusoidalPositions<PositionShape{.seq_len = 2, .d_model = 3, .base = 100}>;
  EXPECT_NEAR(Odd::kVectors(1, 2), 0.046399223464731285, 4e-9);  // sin(100^(−2/3))
}

TEST(SinusoidalPositions, may_start_anywhere) {
  using From = attune::SinusoidalPositions<PositionShape{.seq_len = 3, .d_model = 6, .first = 20}>;
  using All = attune::SinusoidalPositions<PositionShape{.seq_len = 23, .d_model = 6}>;
  for (int t = 0; t < 3; ++t) {
    for (int j = 0; j < 6; ++j) EXPECT_EQ(From::kVectors(t, j), All::kVectors(20 + t, j));
  }
  static_assert(From::kFingerprint != All::kFingerprint);
  // On a stream, in the table and after it.
  static attune::KeyValueCache<attune::Sequential<From>, attune::CacheShape{.window = 1}> cache;
  static decltype(cache)::Scratch<> scratch;
  static const attune::Tensor<float, 1, 6> zeros{};
  for (int t = 0; t < 20; ++t) {
    attune::Tensor<float, 1, 6> y;
    EXPECT_EQ(attune::step(attune::Sequential<From>::Parameters{}, zeros, y, cache, scratch),
              attune::Status::kOk);
    if (20 + t >= 23) continue;
    for (int j = 0; j < 6; ++j) EXPECT_EQ(y(0, j), All::kVectors(20 + t, j));
  }
  using Long = attune::SinusoidalPositions<PositionShape{.seq_len = 41, .d_model = 6}>;
  attune::Tensor<float, 1, 6> y;
  EXPECT_EQ(attune::step(attune::Sequential<From>::Parameters{}, zeros, y, cache, scratch),
            attune::Status::kOk);
  for (int j = 0; j < 6; ++j) EXPECT_NEAR(y(0, j), Long::kVectors(40, j), 1e-5);
}

TEST(SinusoidalPositions, have_the_same_bits_everywhere) {
  check::BitHash hash;
  for (const float value : Sinusoidal::kVectors.values) hash.add(value);
  EXPECT_EQ(hash.value(), 0x45E2A325u);
}
