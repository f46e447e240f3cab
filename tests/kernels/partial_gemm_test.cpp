#include <attune/kernels/ops/partial_gemm.hpp>

#include "kernels/gemm_check.hpp"

namespace {

namespace kernels = attune::kernels;
using Extents = kernels::detail::UsedExtents;

template <class View>
attune::PartView<View, int, int> part(const View& view, int rows, int cols) {
  return {view, rows, cols};
}

// What is used of C is a plain loop over what is used of A and B, whatever they hold behind; what lies behind
// C's columns, in the next matrix, stays.
template <int m, int n, int depth, bool kTransposeA, bool kTransposeB, class Epilogue = kernels::Assign>
void check_parts(std::initializer_list<Extents> cases, const Epilogue& epilogue = {}) {
  static attune::Tensor<float, kTransposeA ? depth : m, kTransposeA ? m : depth> a;
  static attune::Tensor<float, kTransposeB ? n : depth, kTransposeB ? depth : n> b;
  static attune::Tensor<float, m + 1, n> c, expected;
  const auto of_a = [] {
    if constexpr (kTransposeA) {
      return attune::view(a).transpose();
    } else {
      return attune::view(a);
    }
  }();
  const auto of_b = [] {
    if constexpr (kTransposeB) {
      return attune::view(b).transpose();
    } else {
      return attune::view(b);
    }
  }();
  for (const auto& [rows, cols, terms] : cases) {
    attune::Rng rng(1);
    check::fill(a, rng);
    check::fill(b, rng);
    check::fill(c, rng);
    expected = c;
    check::plain_product(rows, cols, terms, of_a.data, of_a.row_stride, of_a.col_stride, of_b.data,
                         of_b.row_stride, of_b.col_stride, expected.data(), n, epilogue);
    for (int i = 0; i < m; ++i) {
      for (int k = terms; k < depth; ++k) const_cast<float&>(of_a(i, k)) = check::kNan<float>;
    }
    for (int k = terms; k < depth; ++k) {
      for (int j = 0; j < n; ++j) const_cast<float&>(of_b(k, j)) = check::kNan<float>;
    }
    kernels::gemm(part(of_a, rows, terms), part(of_b, terms, cols), attune::view(c).template rows_at<m>(0),
                  epilogue);
    bool same = true;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) same &= check::same_bits(c(i, j), expected(i, j));
    }
    for (int j = 0; j < n; ++j) same &= c(m, j) == expected(m, j);
    EXPECT_TRUE(same);
  }
}

}  // namespace

TEST(PartialGemm, is_a_plain_loop_over_used_elements) {
  check_parts<12, 16, 8, false, false>({{12, 16, 8}, {1, 1, 1}, {3, 5, 7}, {4, 16, 2}, {11, 9, 6}});
  check_parts<13, 11, 9, false, false>({{13, 11, 9}, {1, 1, 1}, {13, 3, 9}, {12, 11, 8}, {7, 10, 4}});
  check_parts<12, 16, 8, true, false>({{12, 16, 8}, {1, 1, 1}, {3, 5, 7}, {12, 16, 1}, {12, 16, 5}});
  check_parts<12, 29, 8, false, true>({{12, 29, 8}, {3, 29, 8}, {12, 1, 8}, {1, 28, 8}});
  check_parts<2, 3, 2, false, false>({{2, 3, 2}, {1, 1, 1}});
}

TEST(PartialGemm, every_epilogue) {
  static attune::Tensor<float, 1, 13> bias;
  attune::Rng rng(97);
  check::fill(bias, rng);
  check_parts<8, 13, 6, true, false>({{8, 13, 6}, {8, 13, 1}, {5, 12, 3}}, kernels::Accumulate{});
  check_parts<13, 12, 8, true, false>({{13, 12, 8}, {13, 12, 1}, {5, 11, 3}}, kernels::Continue{});
  check_parts<8, 13, 6, false, true>({{8, 13, 6}, {5, 12, 6}}, kernels::Scale<float>{0.3f});
  check_parts<8, 13, 6, false, false>({{8, 13, 6}, {5, 12, 3}}, kernels::AddBias<float>{bias.data()});
}

TEST(PartialGemm, long_sums_have_the_blocks_of_whole_ones) {
  check_parts<4, 5, 400, false, false>({{4, 5, 400}, {4, 5, 192}, {3, 5, 193}, {1, 1, 7}, {4, 4, 385}});
  check_parts<4, 5, 400, true, false>({{4, 5, 400}, {4, 5, 200}}, kernels::Accumulate{});
  check_parts<4, 16, 400, false, true>({{4, 16, 400}, {3, 9, 400}});
  check_parts<4, 5, 400, false, false>({{4, 5, 399}, {4, 5, 100}}, kernels::Scale<float>{0.3f});
}

TEST(PartialGemm, a_part_of_a_part_is_their_intersection) {
  attune::Tensor<float, 6, 4> matrix{};
  const auto some = part(attune::view(matrix), 5, 3);
  EXPECT_EQ(attune::used_rows(some.template rows_at<3>(3)), 2);
  EXPECT_EQ(attune::used_rows(some.template rows_at<3>(attune::RowRange{1, 2})), 2);
  EXPECT_EQ(attune::used_cols(some.template columns<2>(2)), 1);
  EXPECT_EQ(attune::used_rows(some.transpose()), 3);
  EXPECT_EQ(attune::used_cols(some.transpose()), 5);
  EXPECT_EQ(attune::used_rows(attune::view(matrix)), 6);
}

TEST(PartialGemm, checks_only_used_elements_for_infinity) {
  attune::Tensor<float, 6, 4> matrix{};
  matrix(4, 0) = check::kNan<float>;
  EXPECT_TRUE(kernels::finite(part(attune::view(matrix), 4, 4)));
  EXPECT_FALSE(kernels::finite(part(attune::view(matrix), 5, 4)));
  EXPECT_FALSE(kernels::finite(part(attune::view(matrix), 5, 3)));
}
