// Rows against the plain loops, bit for bit: widths of whole blocks and fours, and all rests of them.
#include <attune/kernels/ops/normalize.hpp>

#include <limits>

#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/finite.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using kernels::Normalization;
constexpr int kMaxCols = 100;
constexpr int kWidths[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 22, 31, 32, 33, 64, 99, kMaxCols};
using Row = attune::Tensor<float, 1, kMaxCols>;

// In the order of reduce.hpp.
float plain_sum(int width, const auto& term) {
  float lanes[kernels::kSumLanes];
  for (float& lane : lanes) lane = -0.0f;
  for (int i = 0; i < width; ++i) lanes[i % kernels::kSumLanes] += term(i);
  for (int half = kernels::kSumLanes / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

template <Normalization kind>
struct Plain {
  const float* x;
  float first = 0, offset = 0, inverse = 1;

  [[nodiscard]] float centered(int i) const {
    return kind == Normalization::kRootMeanSquare ? x[i] : x[i] - first - offset;
  }
  explicit Plain(int width, const float* values) : x(values) {
    const auto count = static_cast<float>(width);
    if constexpr (kernels::centers(kind)) {
      first = x[0];
      offset = plain_sum(width, [&](int i) { return x[i] - first; }) / count;
    }
    const float squares = plain_sum(width, [&](int i) { return centered(i) * centered(i); });
    inverse = kind == Normalization::kMeanAndDeviation
                  ? 1 / (kernels::square_root(squares / (count - 1)) + 1e-5f)
                  : 1 / kernels::square_root(squares / count + 1e-5f);
  }
};

template <Normalization kind, bool kWeight, bool kBias>
void expect_plain_rows() {
  static Row x, weight, bias, y, again;
  attune::Rng rng(3);
  check::fill(x, rng, -3, 3);
  check::fill(weight, rng, -2, 2);
  check::fill(bias, rng, -1, 1);
  for (const int width : kWidths) {
    if (kind == Normalization::kMeanAndDeviation && width == 1) continue;  // has none
    const Plain<kind> plain(width, x.data());
    const auto row = kernels::row_statistics<kind, float>(width, x.data(), 1e-5f);
    EXPECT_TRUE(check::same_bits(row.first, plain.first)) << width;
    EXPECT_TRUE(check::same_bits(row.offset, plain.offset)) << width;
    EXPECT_TRUE(check::same_bits(row.inverse, plain.inverse)) << width;
    for (float& value : y.values) value = 77;
    again = x;
    kernels::normalize_row<kind, kWeight, kBias, float>(
        width, x.data(), row, kWeight ? weight.data() : nullptr, kBias ? bias.data() : nullptr, y.data());
    kernels::normalize_row<kind, kWeight, kBias, float>(width, again.data(), row,
                                                        kWeight ? weight.data() : nullptr,
                                                        kBias ? bias.data() : nullptr, again.data());
    for (int i = 0; i < kMaxCols; ++i) {
      float expected = plain.centered(i) * plain.inverse;
      if (kBias) {
        expected = kernels::multiply_add(expected, weight(0, i), bias(0, i));
      } else if (kWeight) {
        expected *= weight(0, i);
      }
      EXPECT_TRUE(check::same_bits(y(0, i), i < width ? expected : 77.0f)) << width << ' ' << i;
      EXPECT_TRUE(check::same_bits(again(0, i), i < width ? expected : x(0, i))) << width << ' ' << i;
    }
  }
}

template <Normalization kind, bool kWeight>
void expect_plain_gradients() {
  static Row x, weight, dy, dx, in_place;
  attune::Rng rng(4);
  check::fill(x, rng, -3, 3);
  check::fill(weight, rng, -2, 2);
  check::fill(dy, rng, -1, 1);
  for (const int width : kWidths) {
    if (kind == Normalization::kMeanAndDeviation && width == 1) continue;  // has none
    const Plain<kind> plain(width, x.data());
    const kernels::RowStatistics<float> row{plain.first, plain.offset, plain.inverse};
    const auto gradient = [&](int i) { return kWeight ? dy(0, i) * weight(0, i) : dy(0, i); };
    const auto normalized = [&](int i) { return plain.centered(i) * plain.inverse; };
    const auto count = static_cast<float>(width);
    const float mean = kind == Normalization::kRootMeanSquare ? 0 : plain_sum(width, gradient) / count;
    const float part = kernels::subtract_product(1.0f, 1e-5f, plain.inverse);
    const float divisor = kind == Normalization::kMeanAndDeviation ? (count - 1) * part : count;
    EXPECT_TRUE(check::same_bits(kernels::gradient_divisor<kind>(width, row, 1e-5f), divisor));
    const float projection = plain_sum(width, [&](int i) { return gradient(i) * normalized(i); }) / divisor;
    for (float& value : dx.values) value = 77;
    const auto backward = [&](const float* of_x, const float* of_dy, float* to) {
      kernels::normalize_row_backward<kind, kWeight, float>(width, of_x, row, divisor,
                                                            kWeight ? weight.data() : nullptr, of_dy, to);
    };
    backward(x.data(), dy.data(), dx.data());
    for (int i = 0; i < kMaxCols; ++i) {
      const float centered = kind == Normalization::kRootMeanSquare ? gradient(i) : gradient(i) - mean;
      const float expected = kernels::subtract_product(centered, normalized(i), projection) * plain.inverse;
      EXPECT_TRUE(check::same_bits(dx(0, i), i < width ? expected : 77.0f)) << width << ' ' << i;
    }
    const auto expect_same = [&](const Row& otherwise) {
      for (int i = 0; i < kMaxCols; ++i) {
        EXPECT_TRUE(check::same_bits(in_place(0, i), i < width ? dx(0, i) : otherwise(0, i)))
            << width << ' ' << i;
      }
    };
    in_place = x;
    backward(in_place.data(), dy.data(), in_place.data());
    expect_same(x);
    in_place = dy;
    backward(x.data(), in_place.data(), in_place.data());
    expect_same(dy);
  }
}

}  // namespace

TEST(Normalization, layer_norm_has_the_bits_of_plain_loops) {
  expect_plain_rows<Normalization::kMeanAndVariance, true, true>();
  expect_plain_rows<Normalization::kMeanAndVariance, true, false>();
  expect_plain_rows<Normalization::kMeanAndVariance, false, false>();
}

TEST(Normalization, root_mean_square_norm_has_the_bits_of_plain_loops) {
  expect_plain_rows<Normalization::kRootMeanSquare, true, true>();
  expect_plain_rows<Normalization::kRootMeanSquare, true, false>();
  expect_plain_rows<Normalization::kRootMeanSquare, false, false>();
}

TEST(Normalization, norm_by_deviation_has_the_bits_of_plain_loops) {
  expect_plain_rows<Normalization::kMeanAndDeviation, true, true>();
  expect_plain_rows<Normalization::kMeanAndDeviation, false, false>();
}

TEST(Normalization, gradients_have_the_bits_of_plain_loops) {
  expect_plain_gradients<Normalization::kMeanAndVariance, true>();
  expect_plain_gradients<Normalization::kMeanAndVariance, false>();
  expect_plain_gradients<Normalization::kRootMeanSquare, true>();
  expect_plain_gradients<Normalization::kMeanAndDeviation, true>();
  expect_plain_gradients<Normalization::kMeanAndDeviation, false>();
}

TEST(Normalization, of_rows_whose_squares_overflow_is_nan_and_never_zero) {
  constexpr float kMax = std::numeric_limits<float>::max();
  static Row x, y;
  const auto expect_rows = [&]<Normalization kind>(std::integral_constant<Normalization, kind>) {
    for (const int width : kWidths) {
      for (const float size : {1e-30f, 1.0f, 1e17f, 1e18f, 1e19f, 1e20f, 1e30f, kMax / 2, kMax}) {
        for (int i = 0; i < width; ++i)
          x.values[i] = i % 3 == 0 ? size : -size * static_cast<float>(i % 7) / 7;
        const auto row = kernels::row_statistics<kind, float>(width, x.data(), 1e-5f);
        kernels::normalize_row<kind, false, false, float>(width, x.data(), row, nullptr, nullptr, y.data());
        const bool right = kernels::finite(width, y.data());
        EXPECT_TRUE(right || size > 1e18f);
        EXPECT_FALSE(right && size > 1e20f && (kind == Normalization::kRootMeanSquare || width > 2));
        float squares = 0;
        for (int i = 0; i < width; ++i) {
          if (right) squares += y.values[i] * y.values[i] / static_cast<float>(width);
          EXPECT_EQ(check::is_nan(y.values[i]), !right);
        }
        const bool constant = kind == Normalization::kMeanAndVariance && width == 1;
        EXPECT_NEAR(right && size >= 1 && !constant ? squares : 1.0f, 1.0f, 1e-3f);
      }
    }
  };
  expect_rows(std::integral_constant<Normalization, Normalization::kMeanAndVariance>{});
  expect_rows(std::integral_constant<Normalization, Normalization::kRootMeanSquare>{});
}
