#include <attune/attention/rotary_positions.hpp>

#include "check.hpp"

namespace {

using attune::RotaryPairs;
using attune::RotaryShape;
namespace kernels = attune::kernels;

using Rotary = attune::RotaryPositions<RotaryShape{.seq_len = 40, .num_heads = 2, .d_k = 6}>;
using Interleaved = attune::RotaryPositions<RotaryShape{
    .seq_len = 40, .num_heads = 2, .d_k = 6, .pairs = RotaryPairs::kInterleaved}>;

template <class Layer>
typename Layer::Input same_token_everywhere(std::uint64_t seed) {
  attune::Rng rng(seed);
  typename Layer::Input x;
  check::fill(x, rng);
  for (int t = 1; t < Layer::Input::rows; ++t) {
    for (int j = 0; j < Layer::Input::cols; ++j) x(t, j) = x(0, j);
  }
  return x;
}

template <class Layer>
void expect_rotation() {
  attune::Rng rng(3);
  static typename Layer::Input x, y, back;
  check::fill(x, rng);
  Layer::forward(x, y);
  Layer::backward(y, back);
  EXPECT_LE(check::max_difference(x, back), 4 * 0x1p-24);
  for (int j = 0; j < Layer::Input::cols; ++j) EXPECT_EQ(y(0, j), x(0, j));  // position 0 stays
  Layer::forward(x, x);
  EXPECT_TRUE(check::same_bits(x, y));
}

}  // namespace

// Gradients: transformer_gradients_test.cpp.

TEST(RotaryPositions, rotate_and_rotate_back) {
  expect_rotation<Rotary>();
  expect_rotation<Interleaved>();
}

TEST(RotaryPositions, have_the_same_bits_everywhere) {
  check::BitHash hash;
  static Rotary::Output y;
  Rotary::forward(same_token_everywhere<Rotary>(5), y);
  for (const float value : y.values) hash.add(value);
  Interleaved::backward(same_token_everywhere<Interleaved>(6), y);
  for (const float value : y.values) hash.add(value);
  EXPECT_EQ(hash.value(), check::by_policy(0x3D6F098Cu, 0x4D405012u));
}

TEST(RotaryPositions, scaled_positions_rotate_slower_in_the_table_and_beyond_it) {
  constexpr attune::RotaryScaling kScaling{.factor = 8, .original_length = 32};
  using Scaled = attune::RotaryPositions<attune::RotaryShape{
      .seq_len = 5, .num_heads = 1, .d_k = 8, .base = 100, .scaling = kScaling}>;
  using Plain =
      attune::RotaryPositions<attune::RotaryShape{.seq_len = 5, .num_heads = 1, .d_k = 8, .base = 100}>;
  static_assert(Scaled::kFingerprint != Plain::kFingerprint);
  attune::detail::AnglesOfPosition<4> beyond{};
  attune::detail::SineTable<float, 1, 4> angles;
  for (int i = 0; i < 4; ++i) {
    const double frequency = attune::detail::angular_frequency(100, 8, i, kScaling);
    EXPECT_NEAR(Scaled::kTable.sine(3, i), attune::detail::cosine_sine(3 * frequency).sine, 1e-7);
    Scaled::angles_from(9, angles, beyond);
    EXPECT_NEAR(angles.cosine(0, i), attune::detail::cosine_sine(9 * frequency).cosine, 1e-7);
  }
  EXPECT_EQ(Scaled::kTable.sine(3, 0), Plain::kTable.sine(3, 0));
  EXPECT_NE(Scaled::kTable.sine(3, 3), Plain::kTable.sine(3, 3));
}

TEST(RotaryPositions, from_an_offset_have_the_bits_of_a_longer_table) {
  using Long = attune::RotaryPositions<attune::RotaryShape{.seq_len = 40, .num_heads = 1, .d_k = 4}>;
  using Later =
      attune::RotaryPositions<attune::RotaryShape{.seq_len = 5, .num_heads = 1, .d_k = 4, .offset = 35}>;
  for (int position = 0; position < 5; ++position) {
    for (int pair = 0; pair < 2; ++pair) {
      EXPECT_EQ(Later::kTable.cosine(position, pair), Long::kTable.cosine(35 + position, pair));
      EXPECT_EQ(Later::kTable.sine(position, pair), Long::kTable.sine(35 + position, pair));
    }
  }
  static_assert(Later::kFingerprint != Long::kFingerprint);
}
