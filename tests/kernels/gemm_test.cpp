#include "kernels/gemm_check.hpp"

#include <attune/kernels/ops/zero_skipping.hpp>

namespace {

namespace kernels = attune::kernels;
using check::check_product;
using check::Layout;

template <class Scalar, int m, int n, int depth>
void check_layouts() {
  check_product<Scalar, Layout::kNN, m, n, depth>();
  check_product<Scalar, Layout::kNT, m, n, depth>();
  check_product<Scalar, Layout::kTN, m, n, depth>();
}

attune::Tensor<float, 1, 600> bias_row() {
  attune::Rng rng(97);
  attune::Tensor<float, 1, 600> bias;
  check::fill(bias, rng);
  return bias;
}

template <int m, int n, int depth>
void check_epilogues() {
  const auto bias = bias_row();
  check_product<float, Layout::kNN, m, n, depth>(kernels::Accumulate{});
  check_product<float, Layout::kNT, m, n, depth>(kernels::Accumulate{});
  check_product<float, Layout::kNN, m, n, depth, 5>(kernels::Scale<float>{0.3f});
  check_product<float, Layout::kNN, m, n, depth>(kernels::AddBias<float>{bias.data()});
}

}  // namespace

TEST(Gemm, is_a_plain_loop_bit_for_bit) {
  check_layouts<float, 1, 1, 1>();
  check_layouts<float, 1, 7, 3>();
  check_layouts<float, 5, 1, 4>();
  check_layouts<float, 4, 4, 4>();
  check_layouts<float, 8, 16, 32>();
  check_layouts<float, 7, 13, 5>();
  check_layouts<float, 17, 33, 9>();
  check_layouts<double, 3, 5, 7>();
  check_layouts<double, 9, 17, 8>();
}

TEST(Gemm, both_operands_may_be_transposed) {
  check_product<float, Layout::kTT, 5, 17, 6>();
  check_product<double, Layout::kTT, 4, 9, 3>();
}

TEST(Gemm, heads_are_columns_of_wider_matrices) {
  check_product<float, Layout::kNN, 6, 8, 4, 24>();
  check_product<float, Layout::kNT, 6, 18, 5, 3>();
  check_product<float, Layout::kTN, 7, 5, 6, 10>();
  check_product<double, Layout::kNT, 6, 9, 5, 4>();
}

TEST(Gemm, columns_of_a_transposed_operand_may_be_far_apart) {
  constexpr int kRows = 24, kCols = 33, kDepth = 32, kStep = 256;
  static attune::Tensor<float, kDepth, kStep> a;
  attune::Tensor<float, kDepth, kCols> b;
  attune::Tensor<float, kRows, kCols> read, copied;
  attune::Rng rng(6);
  check::fill(a, rng);
  check::fill(b, rng);
  kernels::gemm(view(a).columns<kRows>(0).transpose(), view(b), view(read));
  kernels::detail::copied_rows_gemm<kernels::GemmShape{kRows, kCols, kDepth, 1, kStep, kCols, 1, kCols}>(
      static_cast<const float*>(a.data()), static_cast<const float*>(b.data()), copied.data(),
      kernels::Assign{});
  EXPECT_TRUE(check::same_bits(read, copied));
}

TEST(Gemm, operands_beyond_the_first_level_cache_are_prefetched) { check_layouts<float, 26, 99, 70>(); }

TEST(Gemm, every_epilogue) {
  check_epilogues<5, 19, 6>();
  check_epilogues<4, 3, 8>();
}

TEST(Gemm, long_sums_run_in_blocks) {
  check_product<float, Layout::kNN, 3, 5, 256>();
  check_product<float, Layout::kNN, 3, 18, 257>();
  check_product<float, Layout::kNT, 5, 17, 300>();
  check_product<float, Layout::kTN, 2, 9, 512>();
  check_product<double, Layout::kNN, 2, 3, 515>();
}

TEST(Gemm, every_epilogue_follows_a_long_sum) { check_epilogues<3, 18, 300>(); }

namespace {

// A sum of 11 terms at once, and in parts of 4, 4 and 3: all terms, or those without a factor of zero.
template <int m, int n, bool kTransposed>
void check_continued(const auto& terms) {
  constexpr int kDepth = 11;
  attune::Tensor<float, kTransposed ? kDepth : m, kTransposed ? m : kDepth> a;
  attune::Tensor<float, kDepth, n> b;
  attune::Tensor<float, m, n> at_once, in_parts;
  attune::Rng rng(3);
  check::fill(a, rng);
  check::fill(b, rng);
  for (float& value : b.values) value *= value < 0 ? 1e5f : 1e-5f;
  a.values[0] = 0;
  const auto columns = [&]<int count>(int first) {
    if constexpr (kTransposed) {
      return view(a).template rows_at<count>(first).transpose();
    } else {
      return view(a).template columns<count>(first);
    }
  };
  const auto rows = [&]<int count>(int first) { return view(b).template rows_at<count>(first); };
  terms.gemm(columns.template operator()<kDepth>(0), rows.template operator()<kDepth>(0), view(at_once));
  terms.gemm(columns.template operator()<4>(0), rows.template operator()<4>(0), view(in_parts));
  terms.gemm(columns.template operator()<4>(4), rows.template operator()<4>(4), view(in_parts),
             kernels::Continue{});
  terms.gemm(columns.template operator()<3>(8), rows.template operator()<3>(8), view(in_parts),
             kernels::Continue{});
  EXPECT_TRUE(check::same_bits(at_once, in_parts));
}

}  // namespace

TEST(Gemm, continued_sums_have_the_bits_of_one_sum) {
  check_continued<5, 3, false>(kernels::DenseTerms{});
  check_continued<8, 24, true>(kernels::DenseTerms{});
  check_continued<9, 17, true>(kernels::DenseTerms{});
  const float nan[] = {check::kNan<float>};
  check_continued<8, 5, true>(kernels::ZeroSkipping(attune::MatrixView<const float, 1, 1>(nan)));
}

TEST(Gemm, a_nan_reaches_its_row_and_nothing_else) {
  attune::Tensor<float, 3, 4> a{};
  attune::Tensor<float, 4, 5> b{};
  attune::Tensor<float, 3, 5> c;
  a(1, 2) = check::kNan<float>;
  kernels::gemm(attune::view(a), attune::view(b), attune::view(c));
  for (int j = 0; j < 5; ++j) {
    EXPECT_EQ(c(0, j), 0.0f);
    EXPECT_TRUE(check::is_nan(c(1, j)));
    EXPECT_EQ(c(2, j), 0.0f);
  }
}

TEST(Transpose, copies_every_requested_element) {
  attune::Tensor<float, 21, 6> from;
  attune::Rng rng(5);
  check::fill(from, rng);
  for (int rows = 0; rows <= 21; ++rows) {
    attune::Tensor<float, 6, 32> to{};
    kernels::transpose(view(from), attune::MatrixView<float, 6, 21, 32>(to.data()), rows);
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < rows; ++j) EXPECT_EQ(to(i, j), from(j, i));
      for (int j = 21; j < 32; ++j) EXPECT_EQ(to(i, j), 0.0f);
    }
  }
}
