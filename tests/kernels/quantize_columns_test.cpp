// Weights in 8 bits: the integers and scales of quantize_int8(), element by element, in every order.
#include <attune/kernels/ops/quantize_columns.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16;
using kernels::Int8Order;

// W[length, cols] with numbers of all sizes. Multiples of half a scale are ties, or close to one.
template <class Number>
void draw(Number* w, int length, int cols, float size, attune::Rng& rng) {
  for (int col = 0; col < cols; ++col) {
    const float largest = size * rng.template uniform<float>();
    for (int k = 0; k < length; ++k) {
      const float number = rng.template uniform<float>();
      const int halves = static_cast<int>(number * 508) - 254;
      w[k * cols + col] = k == 0         ? -largest
                          : k % 3 == 0   ? largest * (2 * number - 1)
                          : col % 5 == 4 ? 0.0f
                                         : static_cast<float>(halves) / 254 * largest;
    }
  }
}

template <int length, int cols, Int8Order order, class Number>
void expect_integers_of_division(float size) {
  using Packed = kernels::PackedInt8<length, cols, order>;
  attune::Rng rng(7);
  Number w[length * cols];
  alignas(16) std::int8_t expected[Packed::kBytes], bytes[Packed::kBytes];
  float expected_scales[cols], scales[cols];
  for (int turn = 0; turn < 8; ++turn) {
    draw(w, length, cols, size, rng);
    Packed::clear(expected);
    Packed::clear(bytes);
    const int done = kernels::quantize_columns<Packed>(w, cols, length, cols, bytes, scales);
    EXPECT_TRUE(done <= cols && (order != Int8Order::kColumns || done == cols));
    EXPECT_TRUE(order != Int8Order::kColumnPairs || done == cols / 2 * 2);
    EXPECT_TRUE(order != Int8Order::kEights || sizeof(Number) < 4 || done == cols / 8 * 8);
    for (int col = 0; col < done; ++col) {
      float largest = 0;
      for (int k = 0; k < length; ++k) largest = std::max(largest, std::abs(float(w[k * cols + col])));
      expected_scales[col] = attune::int8_scale(largest);
      for (int k = 0; k < length; ++k) {
        Packed::set(expected, k, col,
                    attune::quantize_int8(float(w[k * cols + col]), expected_scales[col]).value);
      }
    }
    EXPECT_EQ(std::memcmp(bytes, expected, sizeof bytes), 0);
    EXPECT_EQ(std::memcmp(scales, expected_scales, sizeof(float) * static_cast<std::size_t>(done)), 0);
  }
}

template <int length, int cols, Int8Order order>
void expect_integers_of_all_sizes() {
  for (const float size : {1.0f, 0.01f, 3e-30f, 1e-36f, 2e-39f, 0.0f, 3e38f}) {
    expect_integers_of_division<length, cols, order, float>(size);
  }
  expect_integers_of_division<length, cols, order, Bfloat16>(1);
}

template <Int8Order order>
void expect_integers_of_all_extents() {
  expect_integers_of_all_sizes<1, 1, order>();
  expect_integers_of_all_sizes<15, 2, order>();
  expect_integers_of_all_sizes<16, 17, order>();
  expect_integers_of_all_sizes<35, 32, order>();
  expect_integers_of_all_sizes<66, 21, order>();
}

}  // namespace

TEST(QuantizeColumns, has_the_integers_of_a_division) {
  expect_integers_of_all_extents<Int8Order::kColumns>();
  expect_integers_of_all_extents<Int8Order::kColumnPairs>();
  expect_integers_of_all_extents<Int8Order::kColumnGroups>();
  expect_integers_of_all_extents<Int8Order::kEights>();
}
