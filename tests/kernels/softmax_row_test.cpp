// Rows of softmax whose length has assembly of its own on some processor, against a plain loop, bit for bit.
#include <attune/kernels/ops/softmax.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Tensor;

// In the order of kernels/ops/reduce.hpp, for lengths that are multiples of 16.
template <int kCols>
void plain_softmax_row(float* row) {
  float max = row[0];
  for (int j = 1; j < kCols; ++j) max = row[j] > max ? row[j] : max;
  if (max == -check::kInfinity<float>) max = 0;
  for (int j = 0; j < kCols; ++j) row[j] = kernels::exponential(row[j] - max);
  float lanes[16];
  for (int lane = 0; lane < 16; ++lane) {
    lanes[lane] = row[lane];
    for (int j = lane + 16; j < kCols; j += 16) lanes[lane] += row[j];
  }
  for (int half = 8; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  const float inverse = lanes[0] == 0 ? 0 : 1 / lanes[0];
  for (int j = 0; j < kCols; ++j) row[j] *= inverse;
}

template <int kCols>
void expect_plain(const Tensor<float, 1, kCols>& x) {
  Tensor<float, 1, kCols> row = x, expected = x;
  kernels::softmax_rows<float, 1, kCols>(row.data());
  plain_softmax_row<kCols>(expected.data());
  EXPECT_TRUE(check::same_bits(row, expected)) << kCols;
}

template <int kCols>
void check_row() {
  attune::Rng rng(103);
  Tensor<float, 1, kCols> x;
  for (int turn = 0; turn < 50; ++turn) {
    // Narrow enough that no weight is subnormal: a vector unit may flush those.
    check::fill(x, rng, -40, 40);
    expect_plain(x);
    x.values[turn % kCols] = -check::kInfinity<float>;
    x.values[(turn * 7 + 3) % kCols] = -200;
    expect_plain(x);
  }
  for (float& value : x.values) value = -check::kInfinity<float>;
  expect_plain(x);
  for (int at = 0; at < kCols; ++at) {
    x.values[at] = 2;
    expect_plain(x);
    x.values[at] = check::kNan<float>;
    Tensor<float, 1, kCols> row = x;
    kernels::softmax_rows<float, 1, kCols>(row.data());
    for (const float value : row.values) EXPECT_TRUE(check::is_nan(value)) << at;
    x.values[at] = -check::kInfinity<float>;
  }
}

}  // namespace

TEST(SoftmaxRow, of_16_has_the_bits_of_a_plain_loop) { check_row<16>(); }
TEST(SoftmaxRow, of_32_has_the_bits_of_a_plain_loop) { check_row<32>(); }
TEST(SoftmaxRow, of_64_has_the_bits_of_a_plain_loop) { check_row<64>(); }

TEST(SoftmaxRow, exponentials_of_a_row_have_the_bits_of_scalars) {
  constexpr int kSize = 33;
  constexpr float kInf = std::numeric_limits<float>::infinity(), kShift = 1.5f;
  float row[kSize];
  for (int i = 0; i < kSize; ++i) row[i] = kShift - 1e-3f * static_cast<float>(i * i * i * 3);  // to −98
  row[3] = -kInf;
  row[8] = std::numeric_limits<float>::quiet_NaN();
  row[11] = kShift - 87.0f, row[13] = kShift - 87.1f, row[20] = kShift - 86.6f;
  float expected[kSize];
  for (int i = 0; i < kSize; ++i) expected[i] = attune::kernels::exponential(row[i] - kShift);
  attune::kernels::detail::shifted_exponentials<kSize>(row, kShift);
  EXPECT_TRUE(check::is_nan(row[8]));
  for (int i = 0; i < kSize; ++i) EXPECT_TRUE(i == 8 || check::same_bits(row[i], expected[i])) << i;
}

TEST(SoftmaxRow, sums_in_the_order_of_all_targets) {
  const auto check_sum = []<class Scalar, int kCols>(attune::Tensor<Scalar, 1, kCols> row) {
    attune::Rng rng(kCols);
    for (int draw = 0; draw < 20; ++draw) {
      check::fill(row, rng, -3, 3);
      auto powers = row;
      Scalar kept[2];
      kernels::softmax_rows<Scalar, 1, kCols>(row.data(), kept);
      for (Scalar& power : powers.values) power = kernels::exponential(power - kept[0]);
      const Scalar sum =
          kernels::sum<Scalar, kCols>([&]<class P>(int i) { return kernels::load<P>(powers.data() + i); });
      EXPECT_TRUE(check::same_bits(kept[1], Scalar(1) / sum));
    }
  };
  check_sum(attune::Tensor<float, 1, 32>{});
  check_sum(attune::Tensor<float, 1, 41>{});
  check_sum(attune::Tensor<double, 1, 32>{});
  check_sum(attune::Tensor<double, 1, 41>{});
}
