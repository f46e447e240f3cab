// Products of fewer rows than a tile's against the plain loop, bit for bit: whole blocks of columns, columns
// that overlap the block before, columns in twelves and fours, and every rest of k. On a host the portable
// block runs through the same shapes.
#include "kernels/gemm_check.hpp"
#include "kernels/sizes.hpp"

namespace {

namespace kernels = attune::kernels;
using check::check_product;
using check::Layout;

template <class Epilogue>
void check_epilogue(const Epilogue& epilogue) {
  check_product<float, Layout::kNN, 1, 70, 18>(epilogue);
  check_product<float, Layout::kNT, 2, 63, 19>(epilogue);
}

#if ATTUNE_CORTEX_M_FPU
// Logits of a large vocabulary: grids count as many columns as 16 bits do, and more are the portable block's.
constexpr int kVocabulary = 50257;
constexpr kernels::GemmShape kShape{1, kVocabulary, 8, 8, 1, kVocabulary, 1, kVocabulary};
static_assert(kernels::detail::kRowGrid<kShape, true>.cols == kVocabulary);
static_assert(kernels::detail::kQuantizedRowGrid<attune::Int8, kShape.with_b(1, 8)>.cols == kVocabulary);
static_assert(kernels::detail::kTileGrid<kShape.with_rows(8)>.cols + kVocabulary % 4 == kVocabulary);
static_assert(kernels::detail::fits_skinny_gemm(kernels::GemmShape{1, 65535, 8, 8, 1, 65535, 1, 65535}));
static_assert(!kernels::detail::fits_skinny_gemm(kernels::GemmShape{1, 65536, 8, 8, 1, 65536, 1, 65536}));
static_assert(!kernels::detail::fits_tile(kernels::GemmShape{8, 65536, 8, 8, 1, 65536, 1, 65536}));
static_assert(!kernels::detail::fits_quantized_row<const attune::Int8*>(kernels::GemmShape{1, 65536, 8, 8, 1,
                                                                                           1, 8, 65536}));
static_assert(!kernels::detail::fits_quantized<const attune::Int8*>(kernels::GemmShape{8, 65536, 8, 8, 1, 1,
                                                                                       8, 65536}));
#endif

}  // namespace

// The weight gradient of a batch of one to three rows: blocks, and rows and columns beside them.
TEST(SkinnyGemm, few_terms_are_added_to_c) {
  static constexpr check::Sizes kSizes[] = {{2, 8, 1}, {5, 21, 1}, {6, 16, 2},
                                            {3, 7, 2}, {4, 12, 3}, {7, 9, 3}};
  check::for_each_size<kSizes>([]<int m, int n, int depth> {
    check_product<float, Layout::kTN, m, n, depth, 5>(kernels::Accumulate{});
  });
}

// NaN, infinity, subnormal numbers and zeros of both signs, in every position: on each target the bits of
// plain sums that begin with their first term.
TEST(SkinnyGemm, few_terms_have_one_arithmetic) {
  constexpr float kValues[] = {
      0, -0.0f, 1e-40f, -1e-40f, 1.5f, -3e38f, check::kInfinity<float>, 1e-3f, check::kNan<float>};
  constexpr int kCount = 9, kCols = kCount + 4, kRows = kCount + 1;
  const auto value = [&](int i) { return kValues[i % kCount]; };
  const auto check_terms = [&]<int depth> {
    attune::Tensor<float, depth, kRows> x;
    attune::Tensor<float, depth, kCols> dy;
    attune::Tensor<float, kRows, kCols> dw, expected;
    for (int start = 0; start < kCount; ++start) {
      for (int k = 0; k < depth; ++k) {
        for (int i = 0; i < kRows; ++i) x(k, i) = value(i + k * start);
        for (int j = 0; j < kCols; ++j) dy(k, j) = value(2 * j + k);
      }
      for (int i = 0; i < dw.size; ++i) dw.data()[i] = expected.data()[i] = value(i + start);
      kernels::gemm(attune::view(x).transpose(), attune::view(dy), attune::view(dw), kernels::Accumulate{});
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kCols; ++j) {
          float sum = x(0, i) * dy(0, j);
          for (int k = 1; k < depth; ++k) sum = kernels::multiply_add(x(k, i), dy(k, j), sum);
          const float total = expected(i, j) + sum;
          EXPECT_TRUE(check::is_nan(total) ? check::is_nan(dw(i, j)) : check::same_bits(dw(i, j), total))
              << depth << start << i << j;
        }
      }
    }
  };
  check_terms.template operator()<1>();
  check_terms.template operator()<2>();
  check_terms.template operator()<3>();
}

TEST(SkinnyGemm, whole_blocks_of_columns) {
  check_product<float, Layout::kNN, 1, 64, 16>();
  check_product<float, Layout::kNT, 1, 64, 16>();
}

TEST(SkinnyGemm, columns_that_fill_no_block) {
  static constexpr check::Sizes kSizes[] = {{1, 65, 16}, {1, 76, 16}, {1, 82, 16}, {1, 15, 72}};
  static constexpr check::Sizes kTransposed[] = {{1, 65, 16}, {1, 70, 16}, {1, 7, 160}};
  check::for_each_size<kSizes>(
      []<int m, int n, int depth> { check_product<float, Layout::kNN, m, n, depth>(); });
  check::for_each_size<kTransposed>(
      []<int m, int n, int depth> { check_product<float, Layout::kNT, m, n, depth>(); });
}

TEST(SkinnyGemm, every_rest_of_a_sum) {
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (check_product<float, Layout::kNN, 1, 64, 16 + k>(), ...);
    (check_product<float, Layout::kNT, 1, 64, 16 + k>(), ...);
  }
  (std::make_integer_sequence<int, 8>{});
}

TEST(SkinnyGemm, rows_and_parts_of_wider_matrices) {
  check_product<float, Layout::kNN, 2, 66, 19, 24>();
  check_product<float, Layout::kNN, 1, 64, 19, 24>();
  check_product<float, Layout::kNT, 3, 51, 21, 24>();
  check_product<float, Layout::kTN, 2, 64, 16>();
}

// Rows of a weight gradient, as small slices compute them: copied first, up to 64 scalars.
TEST(SkinnyGemm, of_a_transposed_operand) {
  check_product<float, Layout::kTN, 1, 18, 64, 7>();
  check_product<float, Layout::kTN, 3, 16, 21>(kernels::Accumulate{});
  check_product<float, Layout::kTN, 1, 16, 65>();
}

TEST(SkinnyGemm, sums_of_several_blocks) {
  check_product<float, Layout::kNN, 1, 60, kernels::kDepthBlock + 5>();
  check_product<float, Layout::kNT, 1, 12, 2 * kernels::kDepthBlock + 1>(kernels::Accumulate{});
}

TEST(SkinnyGemm, every_epilogue) {
  attune::Rng rng(101);
  attune::Tensor<float, 1, 70> bias;
  check::fill(bias, rng);
  check_epilogue(kernels::Accumulate{});
  check_epilogue(kernels::Scale<float>{0.3f});
  check_epilogue(kernels::AddBias<float>{bias.data()});
}

template <int cols>
void expect_positive_zeros() {
  attune::Tensor<float, 1, cols> a, c;
  const attune::Tensor<float, cols, cols> b{};
  for (float& value : a.values) value = -1;
  kernels::gemm(attune::view(a), attune::view(b), attune::view(c));
  for (const float value : c.values) EXPECT_TRUE(check::same_bits(value, 0.0f));
  kernels::gemm(attune::view(a), attune::view(b).transpose(), attune::view(c));
  for (const float value : c.values) EXPECT_TRUE(check::same_bits(value, 0.0f));
}
TEST(SkinnyGemm, a_sum_of_negative_zeros_is_positive_zero) {
  expect_positive_zeros<32>();
  expect_positive_zeros<36>();
}
