// Products in integers against plain loops: every size around the blocks' edges, extremes, and rows that are
// no numbers.
#include <attune/kernels/ops/int8_gemm.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <attune/core/rng.hpp>

#include "check.hpp"
#include "kernels/sizes.hpp"

namespace {

namespace kernels = attune::kernels;
using kernels::Int8Order;

// W[depth, cols], plain and packed.
template <int kDepth, int kCols>
struct Weights {
  std::array<std::array<int, kCols>, kDepth> plain;
  alignas(16) std::array<std::int8_t, kernels::PackedInt8<kDepth, kCols>::kBytes> packed;
  std::array<float, kCols> scale;

  [[nodiscard]] auto view() const {
    return kernels::PackedInt8View<kDepth, kCols, kDepth, kCols, false>{packed.data(), scale.data()};
  }
  // Integers of value(k, col).
  template <class Value>
  void fill(attune::Rng& rng, const Value& value) {
    using Packed = kernels::PackedInt8<kDepth, kCols>;
    Packed::clear(packed);
    for (int k = 0; k < kDepth; ++k) {
      for (int col = 0; col < kCols; ++col) {
        const int weight = value(k, col);
        plain[static_cast<std::size_t>(k)][static_cast<std::size_t>(col)] = weight;
        Packed::set(packed, k, col, weight);
      }
    }
    for (float& some : scale) some = rng.uniform(0.01f, 0.02f);
  }
  void fill(attune::Rng& rng) {
    fill(rng, [&](int, int) { return static_cast<int>(rng.uniform(-127.49f, 127.49f)); });
  }
};

// A row's integers, by the definition.
template <class Row>
float quantize(const Row& row, int length, int* q) {
  float largest = 0;
  for (int k = 0; k < length; ++k) {
    if (!std::isfinite(row(k))) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(row(k)));
  }
  const bool zeros = largest < 0x1p-100f;
  const float inverse = zeros ? 0 : 127 / largest;
  for (int k = 0; k < length; ++k) {
    const float scaled = row(k) * inverse;
    q[k] = static_cast<int>(std::nearbyint(scaled));
  }
  return zeros ? 0 : largest / 127;
}

bool same(float a, float b) { return check::same_bits(a, b) || (a != a && b != b); }

// C = epilogue(A·W) and of Wᵀ; A has `kGap` numbers behind each row, and so has C.
template <int kRows, int kDepth, int kCols, int kGap = 3>
struct Product {
  static constexpr int kLongest = std::max(kDepth, kCols);
  using A = attune::MatrixView<const float, kRows, kDepth, kDepth + kGap>;
  using C = attune::MatrixView<float, kRows, kCols, kCols + kGap>;
  using DA = attune::MatrixView<float, kRows, kDepth, kDepth + kGap>;
  using DC = attune::MatrixView<const float, kRows, kCols, kCols + kGap>;

  Weights<kDepth, kCols> weights;
  std::array<float, std::size_t{kRows * (kDepth + kGap)}> a, da;
  std::array<float, std::size_t{kRows * (kCols + kGap)}> c;
  std::array<int, kLongest> q;
  std::array<float, kCols> bias;
  std::array<float, kDepth> bias_back;

  void fill(attune::Rng& rng) {
    weights.fill(rng);
    for (float& some : a) some = rng.uniform(-2.0f, 2.0f);
    for (float& some : bias) some = rng.uniform(-2.0f, 2.0f);
    for (float& some : bias_back) some = rng.uniform(-2.0f, 2.0f);
  }
  // Sums that are assigned, have a bias added, or are added to it.
  template <class To, class From, class By>
  static void expect_same_epilogues(const From& from, const By& by, const float* bias) {
    static attune::Tensor<float, kRows, To::cols + kGap> storage, finished_storage;
    const To to(storage.data()), finished(finished_storage.data());
    kernels::gemm(from, by, finished, kernels::AddBias<float>{bias});
    kernels::gemm(from, by, to);
    for (int row = 0; row < kRows; ++row) {
      for (int col = 0; col < To::cols; ++col) {
        ASSERT_TRUE(same(to(row, col) + bias[col], finished(row, col))) << row << col;
        to(row, col) = bias[col];
      }
    }
    kernels::gemm(from, by, to, kernels::Accumulate{});
    for (int row = 0; row < kRows; ++row) {
      for (int col = 0; col < To::cols; ++col) {
        ASSERT_TRUE(same(to(row, col), finished(row, col))) << row << col;
      }
    }
  }
  void expect_same_epilogues() {
    const A from(a.data());
    expect_same_epilogues<C>(from, weights.view(), bias.data());
    kernels::gemm(from, weights.view(), C(c.data()));
    expect_same_epilogues<DA>(DC(c.data()), weights.view().transpose(), bias_back.data());
  }
  void expect_exact(int rows = kRows) {
    const float behind = 5;
    c.fill(behind);
    da.fill(behind);
    const A from(a.data());
    kernels::gemm(from, weights.view(), C(c.data()), kernels::AddBias<float>{bias.data()});
    for (int row = 0; row < rows; ++row) {
      const float scale = quantize([&](int k) { return from(row, k); }, kDepth, q.data());
      for (int col = 0; col < kCols; ++col) {
        const auto j = static_cast<std::size_t>(col);
        int sum = 0;
        for (int k = 0; k < kDepth; ++k) {
          sum += q[static_cast<std::size_t>(k)] * weights.plain[static_cast<std::size_t>(k)][j];
        }
        const float both = scale * weights.scale[j], product = static_cast<float>(sum) * both;
        ASSERT_TRUE(same(c[static_cast<std::size_t>(row * (kCols + kGap)) + j], product + bias[j]))
            << row << col;
      }
      for (int i = kCols; i < kCols + kGap; ++i) {
        ASSERT_EQ(c[static_cast<std::size_t>(row * (kCols + kGap) + i)], behind);
      }
    }

    const DC dy(c.data());
    kernels::gemm(dy, weights.view().transpose(), DA(da.data()), kernels::AddBias<float>{bias_back.data()});
    for (int row = 0; row < rows; ++row) {
      const float scale =
          quantize([&](int col) { return dy(row, col) * weights.scale[static_cast<std::size_t>(col)]; },
                   kCols, q.data());
      for (int k = 0; k < kDepth; ++k) {
        int sum = 0;
        for (int col = 0; col < kCols; ++col) {
          sum += q[static_cast<std::size_t>(col)] *
                 weights.plain[static_cast<std::size_t>(k)][static_cast<std::size_t>(col)];
        }
        const float product = static_cast<float>(sum) * scale;
        ASSERT_TRUE(same(da[static_cast<std::size_t>(row * (kDepth + kGap) + k)],
                         product + bias_back[static_cast<std::size_t>(k)]))
            << row << k;
      }
    }
  }
};

template <int kRows, int kDepth, int kCols>
void expect_exact() {
  static Product<kRows, kDepth, kCols> product;
  attune::Rng rng(kRows * 10000 + kDepth * 100 + kCols);
  product.fill(rng);
  product.expect_exact();
}
template <const auto& table>
void expect_all_exact() {
  check::for_each_size<table>([]<int rows, int depth, int cols> { expect_exact<rows, depth, cols>(); });
}
template <int kDepth, int kCols, int... kRows>
void expect_rows(std::integer_sequence<int, kRows...>) {
  (expect_exact<kRows + 1, kDepth, kCols>(), ...);
}

template <Int8Order kOrder>
void expect_order() {
  using Packed = kernels::PackedInt8<19, 21, kOrder>;
  std::array<std::int8_t, Packed::kBytes> bytes;
  Packed::clear(bytes);
  for (const std::int8_t byte : bytes) EXPECT_EQ(byte, kOrder == Int8Order::kColumnGroups ? -128 : 0);
  attune::Rng rng(3);
  int weights[19][21];
  for (int k = 0; k < 19; ++k) {
    for (int col = 0; col < 21; ++col) {
      const float drawn = rng.uniform(0.0f, 4.0f);  // many extremes
      weights[k][col] = drawn < 1 ? -127 : drawn < 2 ? 127 : static_cast<int>(rng.uniform(-127.0f, 127.0f));
      Packed::set(bytes, k, col, weights[k][col]);
    }
  }
  for (int k = 0; k < 19; ++k) {
    for (int col = 0; col < 21; ++col) EXPECT_EQ(Packed::at(bytes, k, col), weights[k][col]);
  }
}

}  // namespace

TEST(Int8Gemm, every_order_holds_the_integers) {
  expect_order<Int8Order::kColumns>();
  expect_order<Int8Order::kColumnPairs>();
  expect_order<Int8Order::kColumnGroups>();
  expect_order<Int8Order::kEights>();
}

TEST(Int8Gemm, is_exact_around_the_edges_of_blocks) {
  static constexpr check::Sizes kSizes[] = {{4, 1, 1},    {5, 15, 17}, {3, 16, 2},  {1, 33, 31},
                                            {6, 48, 16},  {5, 513, 3}, {3, 600, 7}, {8, 6, 600},
                                            {2, 1100, 2}, {9, 300, 18}};
  static constexpr check::Sizes kOnHost[] = {{13, 64, 49}, {1, 64, 256}};
  static constexpr check::Sizes kMore[] = {{2, 2, 3}, {7, 31, 15}, {4, 511, 5}, {4, 512, 4}};
  expect_rows<32, 32>(std::make_integer_sequence<int, 9>());
  expect_all_exact<kSizes>();
  if constexpr (check::kDepth >= check::kQuickHost) expect_all_exact<kOnHost>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_rows<17, 33>(std::make_integer_sequence<int, 9>());
    expect_all_exact<kMore>();
  }
}

TEST(Int8Gemm, epilogues_finish_the_same_sums) {
  static constexpr check::Sizes kSizes[] = {{3, 16, 2}, {4, 1, 1}, {5, 15, 17}, {8, 32, 18}, {9, 48, 31}};
  check::for_each_size<kSizes>([]<int rows, int depth, int cols> {
    static Product<rows, depth, cols> product;
    attune::Rng rng(rows + depth + cols);
    product.fill(rng);
    product.expect_same_epilogues();
  });
}

TEST(Int8Gemm, no_sum_overflows) {
  static Product<2, 4096, 3> product;
  attune::Rng rng(4);
  product.fill(rng);
  for (int sign = -1; sign <= 1; sign += 2) {
    product.weights.fill(rng, [&](int, int) { return sign * 127; });
    product.a.fill(3.0f);
    product.expect_exact();
  }
}

TEST(Int8Gemm, a_nan_row_gives_nan_and_leaves_other_rows_alone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    static Product<6, 20, 18> product;
    attune::Rng rng(5);
    product.fill(rng);
    product.a[2 * 23 + 7] = bad;
    for (std::size_t k = 0; k < 20; ++k) product.a[4 * 23 + k] = bad;  // their bits would overflow a sum
    product.expect_exact();
    for (int col = 0; col < 18; ++col) {
      EXPECT_NE(product.c[static_cast<std::size_t>(2 * 21 + col)],
                product.c[static_cast<std::size_t>(2 * 21 + col)]);
    }
  }
}

TEST(Int8Gemm, rows_without_a_scale_are_zeros) {
  static Product<4, 20, 18> product;
  attune::Rng rng(6);
  product.fill(rng);
  product.bias.fill(0.5f);
  for (std::size_t k = 0; k < 20; ++k) {
    product.a[k] = 0;
    product.a[23 + k] = -0x1p-130f;
    product.a[2 * 23 + k] = 0x1.8p-101f;
  }
  product.expect_exact();
  for (int row = 0; row < 3; ++row) {
    for (int col = 0; col < 18; ++col) EXPECT_EQ(product.c[static_cast<std::size_t>(row * 21 + col)], 0.5f);
  }
}

TEST(Int8Gemm, the_largest_floats_keep_their_scale) {
  static Product<4, 20, 18> product;
  attune::Rng rng(7);
  product.fill(rng);
  for (float& some : product.a) some *= 1e38f;
  product.expect_exact();
}

TEST(Int8Gemm, takes_transposed_rows_and_accumulates) {
  constexpr int kRows = 5, kDepth = 18, kCols = 7;
  static Weights<kDepth, kCols> weights;
  attune::Rng rng(8);
  weights.fill(rng);
  attune::Tensor<float, kDepth, kRows> transposed;
  attune::Tensor<float, kRows, kDepth> a;
  attune::Tensor<float, kRows, kCols> expected, c;
  check::fill(transposed, rng);
  check::fill(c, rng);
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < kDepth; ++k) a(row, k) = transposed(k, row);
  }
  expected = c;
  kernels::gemm(view(a), weights.view(), view(expected), kernels::Accumulate{});
  attune::Tensor<float, kRows, kCols> once;
  kernels::gemm(view(a), weights.view(), view(once));
  for (int i = 0; i < c.size; ++i) EXPECT_EQ(expected.values[i], c.values[i] + once.values[i]);
  kernels::gemm(view(transposed).transpose(), weights.view(), view(c), kernels::Accumulate{});
  EXPECT_TRUE(check::same_bits(c, expected));

  // Some rows of W alone, as the gradient of a part of x.
  attune::Tensor<float, kRows, kDepth> whole;
  kernels::gemm(view(c), weights.view().transpose(), view(whole));
  for (const int first : {0, 2, 9, 12}) {
    attune::Tensor<float, kRows, 6> part;
    kernels::gemm(view(c), weights.view().transpose().columns<6>(first), view(part));
    for (int row = 0; row < kRows; ++row) {
      for (int k = 0; k < 6; ++k) EXPECT_EQ(part(row, k), whole(row, first + k)) << first;
    }
  }
}

TEST(Int8Gemm, computes_valid_rows_alone) {
  constexpr int kRows = 7;
  static Product<kRows, 20, 18, 0> product;
  attune::Rng rng(9);
  product.fill(rng);
  for (std::size_t i = 3 * 20; i < product.a.size(); ++i)
    product.a[i] = std::numeric_limits<float>::quiet_NaN();
  product.c.fill(9);
  using View = attune::MatrixView<const float, kRows, 20>;
  const attune::PartView<View, int, std::integral_constant<int, 20>> a(View(product.a.data()), 3, {});
  kernels::gemm(a, product.weights.view(), attune::MatrixView<float, kRows, 18>(product.c.data()),
                kernels::AddBias<float>{product.bias.data()});
  const auto part = product.c;
  product.expect_exact(3);
  for (std::size_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part[i], i < 3 * 18 ? product.c[i] : 9);
  }
}
