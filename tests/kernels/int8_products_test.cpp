// Products of two matrices in integers against plain loops: both orders of B, sizes around blocks, parts of
// matrices, and numbers that are not finite.
#include <attune/kernels/ops/int8_products.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <attune/core/rng.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

#include "check.hpp"
#include "kernels/sizes.hpp"

namespace {

using attune::kernels::Int8Products;
namespace kernels = attune::kernels;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Scaled {
  float scale = 0, inverse = 0;
  template <class Value>
  Scaled(int length, const Value& value) {
    float largest = 0;
    for (int i = 0; i < length; ++i) largest = std::max(largest, std::fabs(value(i)));
    if (largest < 0x1p-100f) return;
    scale = largest / 127;
    inverse = 127 / largest;
  }
  [[nodiscard]] int operator()(float number) const {
    return static_cast<int>(std::nearbyint(number * inverse));
  }
};

// One element of A·B.
template <class A, class B>
float expected(const A& a, const B& b, int row, int col) {
  constexpr int kDepth = B::rows;
  long sum = 0;
  if constexpr (B::kMajor == attune::Major::kColumn) {
    const Scaled of_row(kDepth, [&](int k) { return a(row, k); });
    const Scaled of_col(kDepth, [&](int k) { return b(k, col); });
    for (int k = 0; k < kDepth; ++k) sum += of_row(a(row, k)) * of_col(b(k, col));
    return static_cast<float>(sum) * (of_row.scale * of_col.scale);
  } else {
    std::array<float, static_cast<std::size_t>(kDepth)> folded, integers;
    for (int k = 0; k < kDepth; ++k) {
      const Scaled of_k(B::cols, [&](int j) { return b(k, j); });
      folded[static_cast<std::size_t>(k)] = a(row, k) * of_k.scale;
      integers[static_cast<std::size_t>(k)] = static_cast<float>(of_k(b(k, col)));
    }
    const Scaled of_row(kDepth, [&](int k) { return folded[static_cast<std::size_t>(k)]; });
    for (int k = 0; k < kDepth; ++k) {
      sum += of_row(folded[static_cast<std::size_t>(k)]) *
             static_cast<int>(integers[static_cast<std::size_t>(k)]);
    }
    return static_cast<float>(sum) * of_row.scale;
  }
}

template <class Matrix>
void draw(Matrix& matrix, attune::Rng& rng) {
  for (float& value : matrix.values) value = rng.uniform(-2.0f, 2.0f);
}

// A[rows, depth]·B[depth, cols], either of which may stand as its transpose.
template <int kRows, int kDepth, int kCols, bool kTransposedA, bool kTransposedB>
struct Operands {
  attune::Tensor<float, kTransposedA ? kDepth : kRows, kTransposedA ? kRows : kDepth> a_storage;
  attune::Tensor<float, kTransposedB ? kCols : kDepth, kTransposedB ? kDepth : kCols> b_storage;
  attune::Tensor<float, kRows, kCols> c;

  explicit Operands(std::uint64_t seed) {
    attune::Rng rng(seed);
    draw(a_storage, rng);
    draw(b_storage, rng);
    draw(c, rng);
  }
  auto a() {
    if constexpr (kTransposedA) {
      return attune::view(a_storage).transpose();
    } else {
      return attune::view(a_storage);
    }
  }
  auto b() {
    if constexpr (kTransposedB) {
      return attune::view(b_storage).transpose();
    } else {
      return attune::view(b_storage);
    }
  }
};

template <int kRows, int kDepth, int kCols, bool kTransposedA, bool kTransposedB>
void expect_plain_loops() {
  Operands<kRows, kDepth, kCols, kTransposedA, kTransposedB> operands(kRows * 1000 + kDepth * 10 + kCols);
  const auto before = operands.c;
  Int8Products::gemm(operands.a(), operands.b(), attune::view(operands.c), kernels::Accumulate{});
  for (int row = 0; row < kRows; ++row) {
    for (int col = 0; col < kCols; ++col) {
      const float sum = expected(operands.a(), operands.b(), row, col);
      ASSERT_EQ(operands.c(row, col), before(row, col) + sum)
          << kRows << "x" << kDepth << "x" << kCols << " at " << row << ", " << col;
    }
  }
}
template <int kRows, int kDepth, int kCols>
void expect_plain_loops_in_all_orders() {
  expect_plain_loops<kRows, kDepth, kCols, false, false>();
  expect_plain_loops<kRows, kDepth, kCols, false, true>();
  expect_plain_loops<kRows, kDepth, kCols, true, false>();
  expect_plain_loops<kRows, kDepth, kCols, true, true>();
}
template <const auto& table>
void expect_all_plain_loops() {
  check::for_each_size<table>(
      []<int rows, int depth, int cols> { expect_plain_loops_in_all_orders<rows, depth, cols>(); });
}

template <const auto& table>
void expect_all_plain_loops_over_rows() {
  check::for_each_size<table>([]<int rows, int depth, int cols> {
    expect_plain_loops<rows, depth, cols, false, false>();
    expect_plain_loops<rows, depth, cols, true, false>();
  });
}

}  // namespace

TEST(Int8Products, have_the_integers_of_plain_loops) {
  static constexpr check::Sizes kSizes[] = {{1, 16, 1}, {3, 17, 5}, {9, 24, 33}};
  static constexpr check::Sizes kOnHost[] = {{7, 300, 79}};
  static constexpr check::Sizes kMore[] = {{4, 31, 16}, {5, 64, 79}, {7, 300, 18}};
  expect_all_plain_loops<kSizes>();
  if constexpr (check::kDepth >= check::kQuickHost) expect_all_plain_loops<kOnHost>();
  if constexpr (check::kDepth >= check::kFullHost) expect_all_plain_loops<kMore>();
}

TEST(Int8Products, of_short_sums_and_many_columns_have_the_integers_of_plain_loops) {
  static constexpr check::Sizes kSizes[] = {{1, 8, 32}, {2, 8, 33},   {17, 8, 40},
                                            {5, 9, 32}, {18, 16, 39}, {3, 8, 300}};
  static constexpr check::Sizes kOnHost[] = {{33, 15, 64}, {16, 11, 47}};
  expect_all_plain_loops_over_rows<kSizes>();
  if constexpr (check::kDepth >= check::kFullHost) expect_all_plain_loops_over_rows<kOnHost>();
}

// As dW of a Linear with one output, where the rows and the column have the same strides.
TEST(Int8Products, of_one_column_quantize_its_rows_unless_it_is_a_transpose) {
  Operands<3, 20, 1, true, false> by_row(2), by_column(2);
  const auto rows = by_row.b();
  const attune::MatrixView<float, 20, 1, 1, 1, attune::Major::kColumn> column(by_column.b_storage.data());
  static_assert(decltype(rows)::row_stride == 1 && decltype(rows)::col_stride == 1);
  static_assert(decltype(rows)::kMajor == attune::Major::kRow);
  static_assert(decltype(rows.transpose())::kMajor == attune::Major::kColumn);
  Int8Products::gemm(by_row.a(), rows, attune::view(by_row.c));
  Int8Products::gemm(by_column.a(), column, attune::view(by_column.c));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(by_row.c(i, 0), expected(by_row.a(), rows, i, 0));
    EXPECT_EQ(by_column.c(i, 0), expected(by_column.a(), column, i, 0));
    EXPECT_NE(by_row.c(i, 0), by_column.c(i, 0));
  }
}

TEST(Int8Products, epilogues_finish_the_same_sums) {
  static constexpr check::Sizes kSizes[] = {{2, 8, 33}, {5, 9, 32}, {18, 16, 39}, {3, 17, 5}};
  check::for_each_size<kSizes>([]<int rows, int depth, int cols> {
    Operands<rows, depth, cols, true, false> operands(rows);
    auto assigned = operands.c, scaled = operands.c;
    const auto before = operands.c;
    Int8Products::gemm(operands.a(), operands.b(), attune::view(operands.c), kernels::Accumulate{});
    Int8Products::gemm(operands.a(), operands.b(), attune::view(assigned));
    Int8Products::gemm(operands.a(), operands.b(), attune::view(scaled), kernels::Scale<float>{0.3f});
    for (int row = 0; row < rows; ++row) {
      for (int col = 0; col < cols; ++col) {
        const float sum = assigned(row, col);
        ASSERT_TRUE(operands.c(row, col) == before(row, col) + sum && scaled(row, col) == sum * 0.3f);
      }
    }
  });
}

TEST(Int8Products, of_short_sums_are_integers_for_many_columns_in_rows) {
  const auto in_floats = []<int depth, int cols, bool kTransposedB> {
    Operands<4, depth, cols, false, kTransposedB> operands(1), same(1);
    Int8Products::gemm(operands.a(), operands.b(), attune::view(operands.c));
    kernels::gemm(same.a(), same.b(), attune::view(same.c));
    return check::same_bits(operands.c, same.c);
  };
  EXPECT_TRUE((in_floats.operator()<7, 32, false>()));
  EXPECT_TRUE((in_floats.operator()<8, 31, false>()));
  EXPECT_TRUE((in_floats.operator()<15, 32, true>()));
  EXPECT_FALSE((in_floats.operator()<8, 32, false>()));
}

TEST(Int8Products, of_short_sums_and_doubles_use_their_scalars) {
  Operands<4, Int8Products::kMinDepth - 1, 6, false, false> operands(1), same(1);
  Int8Products::gemm(operands.a(), operands.b(), attune::view(operands.c));
  kernels::gemm(same.a(), same.b(), attune::view(same.c));
  EXPECT_TRUE(check::same_bits(operands.c, same.c));

  attune::Tensor<double, 20, 20> a, c, product;
  attune::Rng rng(2);
  for (double& value : a.values) value = rng.uniform(-1.0f, 1.0f);
  Int8Products::gemm(attune::view(a), attune::view(a), attune::view(c));
  kernels::gemm(attune::view(a), attune::view(a), attune::view(product));
  EXPECT_TRUE(check::same_bits(c, product));
}

TEST(Int8Products, of_parts_read_nothing_else) {
  const auto expect_same = [&]<bool kTransposedB, int kDepth, int kUsed, int kCols>() {
    constexpr int kRows = 7;
    Operands<kRows, kDepth, kCols, true, kTransposedB> operands(3);
    Operands<kRows, kUsed, kCols, true, kTransposedB> clean(4);
    for (int k = 0; k < kDepth; ++k) {
      for (int i = 0; i < kRows; ++i) {
        if (k < kUsed) clean.a_storage(k, i) = operands.a_storage(k, i);
        if (k >= kUsed) operands.a_storage(k, i) = kNaN;
      }
      for (int j = 0; j < kCols; ++j) {
        if (k < kUsed) clean.b()(k, j) = operands.b()(k, j);
        if (k >= kUsed) operands.b()(k, j) = kNaN;
      }
    }
    const auto a = attune::view(operands.a_storage).template rows_at<kDepth>(attune::RowRange{0, kUsed});
    const auto b = operands.b().template rows_at<kDepth>(attune::RowRange{0, kUsed});
    Int8Products::gemm(a.transpose(), b, attune::view(operands.c));
    Int8Products::gemm(clean.a(), clean.b(), attune::view(clean.c));
    EXPECT_TRUE(check::same_bits(operands.c, clean.c));
  };
  expect_same.template operator()<false, 40, 19, 21>();
  expect_same.template operator()<true, 40, 19, 21>();
  expect_same.template operator()<false, 16, 9, 36>();
  expect_same.template operator()<false, 15, 8, 36>();
}

TEST(Int8Products, of_short_parts_read_nothing_else) {
  constexpr int kRows = 6, kDepth = 8, kUsed = 5, kCols = 35;
  Operands<kRows, kDepth, kCols, true, false> operands(3), clean(3);
  for (int k = kUsed; k < kDepth; ++k) {
    for (int i = 0; i < kRows; ++i) operands.a_storage(k, i) = kNaN, clean.a_storage(k, i) = 0;
    for (int j = 0; j < kCols; ++j) operands.b_storage(k, j) = kNaN, clean.b_storage(k, j) = 0;
  }
  const auto a = attune::view(operands.a_storage).template rows_at<kDepth>(attune::RowRange{0, kUsed});
  const auto b = operands.b().template rows_at<kDepth>(attune::RowRange{0, kUsed});
  Int8Products::gemm(a.transpose(), b, attune::view(operands.c));
  Int8Products::gemm(clean.a(), clean.b(), attune::view(clean.c));
  EXPECT_TRUE(check::same_bits(operands.c, clean.c));
}

TEST(Int8Products, do_not_depend_on_how_rows_are_split) {
  const auto expect_same = []<int depth, int cols> {
    Operands<9, depth, cols, false, false> whole(5), split(5);
    Int8Products::gemm(whole.a(), whole.b(), attune::view(whole.c));
    for (int row = 0; row < 9; row += 3) {
      Int8Products::gemm(split.a().template rows_at<3>(row), split.b(),
                         attune::view(split.c).template rows_at<3>(row));
    }
    EXPECT_TRUE(check::same_bits(whole.c, split.c));
  };
  expect_same.operator()<33, 20>();
  expect_same.operator()<8, 40>();
}

TEST(Int8Products, of_infinities_and_nan_are_not_finite) {
  Operands<3, 20, 4, false, false> operands(6);
  operands.a_storage(1, 7) = std::numeric_limits<float>::infinity();
  Int8Products::gemm(operands.a(), operands.b(), attune::view(operands.c));
  for (int j = 0; j < 4; ++j) {
    EXPECT_TRUE(std::isfinite(operands.c(0, j)) && std::isfinite(operands.c(2, j)));
    EXPECT_FALSE(std::isfinite(operands.c(1, j)));
  }
  Operands<4, 8, 33, true, false> short_sums(6);
  short_sums.a_storage(7, 1) = std::numeric_limits<float>::infinity();
  for (int k = 0; k < 8; ++k) short_sums.a_storage(k, 2) *= 0x1p-110f;
  Int8Products::gemm(short_sums.a(), short_sums.b(), attune::view(short_sums.c));
  for (int j = 0; j < 33; ++j) {
    EXPECT_TRUE(std::isfinite(short_sums.c(0, j)) && std::isfinite(short_sums.c(3, j)));
    EXPECT_FALSE(std::isfinite(short_sums.c(1, j)));
    EXPECT_EQ(short_sums.c(2, j), 0.0f);
  }
  Operands<3, 20, 4, false, true> by_columns(7);
  by_columns.b_storage(2, 0) = kNaN;
  Int8Products::gemm(by_columns.a(), by_columns.b(), attune::view(by_columns.c));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isfinite(by_columns.c(i, 1)));
    EXPECT_FALSE(std::isfinite(by_columns.c(i, 2)));
  }
}

TEST(Int8Products, skip_hidden_terms) {
  Operands<4, 20, 70, false, false> hidden(8), finite(8);
  for (int i = 0; i < 4; ++i) hidden.a_storage(i, 5) = finite.a_storage(i, 5) = 0;
  for (int j = 0; j < 70; ++j) {
    hidden.b_storage(5, j) = kNaN;
    hidden.b_storage(6, j) = finite.b_storage(6, j) = 0;
  }
  for (int i = 0; i < 4; ++i) hidden.a_storage(i, 6) = kNaN;
  kernels::OwnZeroSkippingOf<Int8Products>::gemm(hidden.a(), hidden.b(), attune::view(hidden.c));
  Int8Products::gemm(finite.a(), finite.b(), attune::view(finite.c));
  EXPECT_TRUE(check::same_bits(hidden.c, finite.c));
  hidden.a_storage(2, 5) = 1;
  kernels::OwnZeroSkippingOf<Int8Products>::gemm(hidden.a(), hidden.b(), attune::view(hidden.c));
  for (int j = 0; j < 70; ++j) {
    EXPECT_FALSE(std::isfinite(hidden.c(2, j)));
    EXPECT_TRUE(std::isfinite(hidden.c(1, j)));
  }
}
