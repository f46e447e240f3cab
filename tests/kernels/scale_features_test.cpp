#include <attune/kernels/ops/scale_features.hpp>

#include <limits>

#include "check.hpp"

namespace {

constexpr int kMax = 37, kRows = 5;
float x[kRows * kMax], dy[kRows * kMax], factors[kMax];

void draw() {
  attune::Rng rng(1);
  for (float& value : x) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : dy) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : factors) value = rng.uniform(-1.0f, 1.0f);
}

}  // namespace

TEST(ScaleFeatures, multiplies_element_by_element_at_every_width) {
  draw();
  for (int width = 1; width <= kMax; ++width) {
    float y[kMax + 1] = {};
    attune::kernels::scale_features<false>(width, x, factors, y);
    for (int j = 0; j < width; ++j) EXPECT_EQ(y[j], x[j] * factors[j]);
    EXPECT_EQ(y[width], 0.0f);
    attune::kernels::scale_features<true>(width, x, factors, y);
    for (int j = 0; j < width; ++j) EXPECT_EQ(y[j], x[j] * factors[0]);
    EXPECT_EQ(y[width], 0.0f);
  }
}

TEST(ScaleFeatures, adds_rows_in_rising_order_at_every_width) {
  draw();
  for (int width = 1; width <= kMax; ++width) {
    float sums[kMax + 1], expected[kMax];
    for (int j = 0; j <= width; ++j) sums[j] = 2.0f;
    attune::kernels::add_feature_products<false, false>(kRows, width, dy, x, sums);
    for (int j = 0; j < width; ++j) {
      float sum = 0;
      for (int i = 0; i < kRows; ++i) {
        sum = attune::kernels::multiply_add(dy[i * width + j], x[i * width + j], sum);
      }
      expected[j] = 2.0f + sum;
      EXPECT_EQ(sums[j], expected[j]);
    }
    EXPECT_EQ(sums[width], 2.0f);
  }
}

TEST(ScaleFeatures, sums_products_of_rows_that_lie_apart) {
  draw();
  constexpr int kSize = 7, kStride = 11;
  float expected = 0;
  for (int i = 0; i < kRows; ++i) {
    float row = 0;  // as few numbers as lanes, joined by halves
    const auto at = [&](int j) { return dy[i * kStride + j] * x[i * kStride + j]; };
    row = ((at(0)) + (at(4))) + ((at(2)) + (at(6)));
    row = row + (((at(1)) + (at(5))) + (at(3)));
    expected = expected + row;
  }
  EXPECT_EQ((attune::kernels::sum_of_products<false>(kRows, kSize, kStride, dy, x)), expected);
  for (int j = 0; j < kSize; ++j) dy[2 * kStride + j] = 0;
  const float without = attune::kernels::sum_of_products<true>(kRows, kSize, kStride, dy, x);
  for (int j = 0; j < kSize; ++j) x[2 * kStride + j] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ((attune::kernels::sum_of_products<true>(kRows, kSize, kStride, dy, x)), without);
}

TEST(ScaleFeatures, adds_one_sum_of_all_features_at_once) {
  draw();
  float sum = 2;
  attune::kernels::add_feature_products<true, false>(kRows, 7, dy, x, &sum);
  EXPECT_EQ(sum, 2 + attune::kernels::sum_of_products<false>(kRows, 7, 7, dy, x));
}

TEST(ScaleFeatures, reads_nothing_where_the_gradient_is_zero) {
  draw();
  constexpr int kWidth = 11;
  float with[kWidth] = {}, without[kWidth] = {};
  for (int j = 0; j < kWidth; ++j) x[2 * kWidth + j] = dy[2 * kWidth + j] = 0;
  attune::kernels::add_feature_products<false, true>(kRows, kWidth, dy, x, without);
  for (int j = 0; j < kWidth; ++j) x[2 * kWidth + j] = std::numeric_limits<float>::quiet_NaN();
  attune::kernels::add_feature_products<false, true>(kRows, kWidth, dy, x, with);
  for (int j = 0; j < kWidth; ++j) EXPECT_EQ(with[j], without[j]);
}
