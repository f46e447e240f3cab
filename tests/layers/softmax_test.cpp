#include <attune/layers/softmax.hpp>

#include "check.hpp"

namespace {

using Layer = attune::Softmax<3, 5>;

Layer::Input random_input(std::uint64_t seed) {
  attune::Rng rng(seed);
  Layer::Input x;
  check::fill(x, rng, -5, 5);
  return x;
}

}  // namespace

// Gradients: layer_gradients_test.cpp; arithmetic of one row: kernels/rows_test.cpp.

TEST(Softmax, equal_logits_share_equally) {
  Layer::Input x;
  for (float& value : x.values) value = 1e30f;
  Layer::forward(x, x);
  for (const float value : x.values) EXPECT_EQ(value, 0.2f);
}

TEST(Softmax, works_in_place) {
  const Layer::Input x = random_input(2);
  Layer::Input in_place = x;
  Layer::Output y;
  Layer::forward(x, y);
  Layer::forward(in_place, in_place);
  EXPECT_TRUE(check::same_bits(y, in_place));

  const Layer::Output dy = random_input(3);
  Layer::Output dx, over_y = y, over_dy = dy;
  Layer::backward(y, dy, dx);
  Layer::backward(over_y, dy, over_y);
  Layer::backward(y, over_dy, over_dy);
  EXPECT_TRUE(check::same_bits(dx, over_y));
  EXPECT_TRUE(check::same_bits(dx, over_dy));
}

TEST(Softmax, rows_do_not_mix) {
  Layer::Input x = random_input(4);
  Layer::Output before, after;
  Layer::forward(x, before);
  for (int j = 0; j < 5; ++j) x(1, j) = check::kNan<float>;
  Layer::forward(x, after);
  for (int j = 0; j < 5; ++j) {
    EXPECT_EQ(after(0, j), before(0, j));
    EXPECT_TRUE(check::is_nan(after(1, j)));
    EXPECT_EQ(after(2, j), before(2, j));
  }
}

TEST(Softmax, a_row_of_minus_infinity_is_zero_and_has_no_gradient) {
  Layer::Input x = random_input(5);
  for (int j = 0; j < 5; ++j) x(2, j) = -check::kInfinity<float>;
  Layer::Output y, dx;
  Layer::forward(x, y);
  Layer::backward(y, random_input(6), dx);
  for (int j = 0; j < 5; ++j) {
    EXPECT_EQ(y(2, j), 0.0f);
    EXPECT_EQ(dx(2, j), 0.0f);
  }
}
