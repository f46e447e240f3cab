#include <attune/kernels/ops/softmax.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Tensor;
using check::kInfinity;
using check::kNan;

template <class Scalar>
double row_sum(const Scalar* row, int size) {
  double total = 0;
  for (int i = 0; i < size; ++i) total += static_cast<double>(row[i]);
  return total;
}

}  // namespace

TEST(Rows, softmax_survives_any_finite_input) {
  Tensor<float, 1, 5> x{{3e38f, -3e38f, 3e38f, 0.0f, 1.0f}};
  kernels::softmax_rows<float, 1, 5>(x.data());
  EXPECT_EQ(x.values[0], 0.5f);
  EXPECT_EQ(x.values[2], 0.5f);
  EXPECT_EQ(row_sum(x.data(), 5), 1.0);
}

TEST(Rows, softmax_of_hidden_keys_is_zero) {
  Tensor<float, 1, 19> x;
  for (float& value : x.values) value = -kInfinity<float>;
  x.values[4] = x.values[17] = -2.0f;
  kernels::softmax_rows<float, 1, 19>(x.data());
  for (int i = 0; i < x.size; ++i) EXPECT_EQ(x.values[i], i == 4 || i == 17 ? 0.5f : 0.0f);
}

TEST(Rows, softmax_of_nothing_but_hidden_keys_is_zero) {
  Tensor<float, 1, 19> x;
  for (float& value : x.values) value = -kInfinity<float>;
  kernels::softmax_rows<float, 1, 19>(x.data());
  for (const float value : x.values) EXPECT_TRUE(check::same_bits(value, 0.0f));
}

TEST(Rows, softmax_of_a_nan_is_nan_in_the_whole_row) {
  for (int at = 0; at < 19; ++at) {
    for (const float others : {0.0f, -kInfinity<float>}) {
      Tensor<float, 1, 19> x;
      for (float& value : x.values) value = others;
      x.values[at] = kNan<float>;
      kernels::softmax_rows<float, 1, 19>(x.data());
      for (const float value : x.values) EXPECT_TRUE(check::is_nan(value)) << at;
    }
  }
}

TEST(Rows, softmax_has_the_same_bits_everywhere) {
  attune::Rng rng(53);
  check::BitHash hash;
  for (int i = 0; i < 50; ++i) {
    Tensor<float, 1, 37> x, dp;
    check::fill(x, rng, -6, 6);
    check::fill(dp, rng);
    kernels::softmax_rows<float, 1, 37>(x.data());
    for (const float value : x.values) hash.add(value);
    kernels::softmax_row_backward<float, 37>(x.data(), dp.data(), dp.data(), 0.3f);
    for (const float value : dp.values) hash.add(value);
  }
  EXPECT_EQ(hash.value(), check::by_policy(0x77FFED27u, 0xA1544CEAu));
}

TEST(Rows, softmax_backward_may_overwrite_either_operand) {
  attune::Rng rng(59);
  Tensor<float, 1, 21> p, dp, ds;
  check::fill(p, rng, 0, 1);
  check::fill(dp, rng);
  kernels::softmax_row_backward<float, 21>(p.data(), dp.data(), ds.data(), 0.5f);
  Tensor<float, 1, 21> over_p = p, over_dp = dp;
  kernels::softmax_row_backward<float, 21>(over_p.data(), dp.data(), over_p.data(), 0.5f);
  kernels::softmax_row_backward<float, 21>(p.data(), over_dp.data(), over_dp.data(), 0.5f);
  EXPECT_TRUE(check::same_bits(over_p, ds));
  EXPECT_TRUE(check::same_bits(over_dp, ds));
}

TEST(Rows, column_sums_add_rows_in_rising_order) {
  constexpr int kRows = 9, kCols = 21, kStride = 25;
  attune::Rng rng(61);
  Tensor<float, kRows, kStride> x;
  Tensor<float, 1, kCols> sums, expected;
  check::fill(x, rng, -100, 100);
  check::fill(sums, rng);
  for (int j = 0; j < kCols; ++j) {
    float column = x(0, j);
    for (int i = 1; i < kRows; ++i) column = column + x(i, j);
    expected.values[j] = sums.values[j] + column;
  }
  kernels::add_column_sums<kRows, kCols, kStride>(x.data(), sums.data());
  EXPECT_TRUE(check::same_bits(sums, expected));
}

TEST(Rows, scale_multiplies_every_element) {
  attune::Rng rng(67);
  Tensor<float, 1, 45> x, expected;
  check::fill(x, rng);
  for (int i = 0; i < x.size; ++i) expected.values[i] = x.values[i] * 0.3f;
  kernels::scale<45>(x.data(), 0.3f);
  EXPECT_TRUE(check::same_bits(x, expected));
}
