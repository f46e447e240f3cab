// Rows of which only the first scalars count, against whole rows, bit by bit.
#include <attune/kernels/ops/softmax_prefix.hpp>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

template <class Scalar, int kCols, class End>
void expect_bits_of_whole_rows() {
  attune::Tensor<Scalar, 1, kCols> scores;
  attune::Rng rng(5);
  for (int end = 0; end <= kCols; ++end) {
    check::fill(scores, rng, -30, 3);
    for (int j = end; j < kCols; ++j) scores(0, j) = -check::kInfinity<Scalar>;
    auto expected = scores;
    kernels::softmax_rows<Scalar, 1, kCols>(expected.data());
    kernels::softmax_rows<Scalar, 1, kCols>(scores.data(), nullptr, End{end});
    ASSERT_TRUE(check::same_bits(scores, expected));
  }
}

}  // namespace

TEST(SoftmaxPrefix, has_the_bits_of_whole_rows) {
  expect_bits_of_whole_rows<float, 64, kernels::Before>();
  expect_bits_of_whole_rows<float, 51, kernels::Before>();
  expect_bits_of_whole_rows<double, 53, kernels::Before>();
}

TEST(SoftmaxPrefix, of_exponentials_has_the_bits_of_whole_rows) {
  expect_bits_of_whole_rows<float, 34, int>();
  expect_bits_of_whole_rows<float, 21, int>();
  expect_bits_of_whole_rows<double, 18, int>();
}
