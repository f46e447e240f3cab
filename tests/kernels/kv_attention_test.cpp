// Attention over blocks against the kernels of whole matrices, bit by bit.
#include <attune/kernels/ops/kv_attention.hpp>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
constexpr int kBlock = kernels::kCacheBlock;

template <class Scalar, int kDepth, int blocks>
void expect_scores_of_a_product() {
  static attune::Tensor<Scalar, 1, kDepth> query;
  static attune::Tensor<Scalar, blocks * kBlock, kDepth> keys;
  static attune::Tensor<Scalar, 1, blocks * kBlock> scores, expected;
  static Scalar in_blocks[std::size_t{blocks} * kDepth * kBlock];
  attune::Rng rng(1);
  check::fill(query, rng, -3, 3);
  check::fill(keys, rng, -3, 3);
  for (int i = 0; i < keys.rows; ++i) {
    for (int k = 0; k < kDepth; ++k) in_blocks[(i / kBlock * kDepth + k) * kBlock + i % kBlock] = keys(i, k);
  }
  kernels::gemm(view(query), view(keys).transpose(), view(expected));
  kernels::block_scores<kDepth, Scalar>(blocks, query.data(), in_blocks, scores.data());
  EXPECT_TRUE(check::same_bits(scores, expected));
}
TEST(KvAttention, scores_have_the_bits_of_a_product) {
  expect_scores_of_a_product<float, 1, 1>();
  expect_scores_of_a_product<float, 8, 3>();
  expect_scores_of_a_product<float, 21, 2>();
  expect_scores_of_a_product<float, 200, 1>();  // in two blocks of the sum
  expect_scores_of_a_product<double, 7, 2>();
}

template <class Scalar, int blocks>
void expect_softmax_of_a_row(const attune::Tensor<Scalar, 1, blocks * kBlock>& scores) {
  for (const Scalar scale : {Scalar(1), Scalar(0.3)}) {
    auto row = scores, expected = scores;
    kernels::scale<blocks * kBlock>(expected.data(), scale);
    kernels::softmax_rows<Scalar, 1, blocks * kBlock>(expected.data());
    kernels::block_softmax(blocks, row.data(), scale);
    for (int i = 0; i < row.cols; ++i) {
      if (check::is_nan(expected(0, i))) {
        EXPECT_TRUE(check::is_nan(row(0, i)));
      } else {
        EXPECT_TRUE(check::same_bits(row(0, i), expected(0, i)));
      }
    }
  }
}
template <class Scalar, int blocks>
void expect_softmax_of_rows() {
  attune::Tensor<Scalar, 1, blocks * kBlock> row;
  attune::Rng rng(2);
  const auto expect = [&] { expect_softmax_of_a_row<Scalar, blocks>(row); };
  for (int i = 0; i < row.cols; ++i) row(0, i) = Scalar(i - row.cols);  // each larger than all before it
  expect();
  check::fill(row, rng, -9, -1);
  expect();
  for (const int largest : {0, 3, 6, 12, row.cols - 1}) {  // the first that is positive
    const Scalar before = row(0, largest);
    row(0, largest) = Scalar(0.5);
    expect();
    row(0, largest) = before;
  }
  check::fill(row, rng, -200, 4);  // of which some are too far apart for a weight
  expect();
  check::fill(row, rng, -2, 2);
  for (int i = 0; i < row.cols; i += 3) row(0, i) = -check::kInfinity<Scalar>;
  expect();
  const auto bits_of_nan =
      std::bit_cast<typename kernels::detail::ExpCoefficients<Scalar>::Bits>(check::kNan<Scalar>);
  for (const Scalar nan :
       {check::kNan<Scalar>, -check::kNan<Scalar>, std::bit_cast<Scalar>(bits_of_nan + 1)}) {
    row(0, row.cols - 1) = nan;
    expect();
  }
  for (Scalar& value : row.values) value = -check::kInfinity<Scalar>;
  expect();
  row(0, 1) = check::kInfinity<Scalar>;
  expect();
}
TEST(KvAttention, bounded_blocks_have_the_bits_of_others) {
  constexpr int kBlocks = 5;
  attune::Tensor<float, 1, kBlocks * kBlock> scores;
  attune::Rng rng(4);
  const auto most = static_cast<float>(kernels::kMaxScore);
  for (const float scale : {1.0f, 0.3f}) {
    check::fill(scores, rng, -most / scale, most / scale);
    scores(0, 30) = most / scale;  // and what is furthest from it
    scores(0, 31) = -most / scale;
    for (int first = 0; first < kBlocks; ++first) {
      for (int end = first; end <= kBlocks; ++end) {
        auto row = scores, expected = scores;
        // Blocks before and behind may have anything, in one that is no bounded block's.
        if (first > 0) row(0, 3) = expected(0, 3) = -check::kInfinity<float>;
        if (end < kBlocks) row(0, row.cols - 2) = expected(0, row.cols - 2) = -3000;
        kernels::block_softmax(kBlocks, row.data(), scale, {first, end});
        kernels::block_softmax(kBlocks, expected.data(), scale);
        EXPECT_TRUE(check::same_bits(row, expected));
      }
    }
  }
}
TEST(KvAttention, squares_equal_scalar_squares) {
  const float x[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11};
  EXPECT_EQ(kernels::sum_of_few_squares<11>(x), 506.0f);
  EXPECT_EQ(kernels::sum_of_few_squares<8>(x), 204.0f);
  EXPECT_EQ(kernels::sum_of_few_squares<3>(x), 14.0f);
}
TEST(KvAttention, softmax_has_the_bits_of_a_whole_row) {
  expect_softmax_of_rows<float, 1>();
  expect_softmax_of_rows<float, 5>();
  expect_softmax_of_rows<double, 2>();
}

template <class Scalar, int kCols>
void expect_sums_of_a_product() {
  constexpr int kRows = 37;
  static attune::Tensor<Scalar, 1, kRows> weights;
  static attune::Tensor<Scalar, kRows, kCols> rows;
  static attune::Tensor<Scalar, 1, kCols> expected, sums;
  attune::Rng rng(3);
  check::fill(weights, rng);
  check::fill(rows, rng);
  kernels::gemm(view(weights), view(rows), view(expected));
  for (const int first : {0, 1, 16, 36, 37}) {  // one run, and two
    for (auto add :
         {kernels::add_weighted_rows<kCols, Scalar>, kernels::add_nonzero_weighted_rows<kCols, Scalar>}) {
      sums.set_zero();
      add(first, weights.data(), rows.data(), sums.data());
      add(kRows - first, weights.data() + first, rows.data() + first * kCols, sums.data());
      EXPECT_TRUE(check::same_bits(sums, expected));
    }
  }
}
TEST(KvAttention, weighted_sums_have_the_bits_of_a_product) {
  expect_sums_of_a_product<float, 1>();
  expect_sums_of_a_product<float, 8>();
  expect_sums_of_a_product<float, 23>();
  expect_sums_of_a_product<float, 64>();
  expect_sums_of_a_product<double, 5>();
}
TEST(KvAttention, zero_factors_are_skipped_on_request) {
  const float weights[] = {0, 2, 0.5f};
  const float rows[] = {check::kInfinity<float>, 1, 3};
  float sum[] = {0};
  kernels::add_nonzero_weighted_rows<1>(3, weights, rows, sum);
  EXPECT_EQ(sum[0], 3.5f);
  kernels::add_weighted_rows<1>(3, weights, rows, sum);
  EXPECT_TRUE(check::is_nan(sum[0]));
}

}  // namespace
