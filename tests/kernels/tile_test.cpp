// The register blocks in assembly against the plain loop, bit for bit: whole tiles, rests of every size, odd
// and even sums, and strides on both sides of what an instruction holds. On a host the portable block runs
// through the same shapes.
#include "kernels/gemm_check.hpp"
#include "kernels/sizes.hpp"

namespace {

namespace kernels = attune::kernels;
using check::check_product;
using check::Layout;

template <int m, int n, int depth, int kWider = 0>
void check_layouts() {
  check_product<float, Layout::kNN, m, n, depth, kWider>();
  check_product<float, Layout::kNT, m, n, depth, kWider>();
  check_product<float, Layout::kTN, m, n, depth, kWider>();
  check_product<float, Layout::kTT, m, n, depth, kWider>();
}

template <const auto& table>
void check_sizes() {
  check::for_each_size<table>([]<int m, int n, int depth> { check_layouts<m, n, depth>(); });
}

template <class Epilogue>
void check_epilogue(const Epilogue& epilogue) {
  check_product<float, Layout::kNN, 8, 12, 8>(epilogue);
  check_product<float, Layout::kNT, 8, 8, 6, 5>(epilogue);
  check_product<float, Layout::kNT, 7, 13, 5>(epilogue);
  check_product<float, Layout::kNN, 6, 15, 5>(epilogue);
  check_product<float, Layout::kNN, 5, 16, 7>(epilogue);
  check_product<float, Layout::kNT, 6, 16, 6>(epilogue);
  check_product<float, Layout::kTN, 13, 8, 7, 3>(epilogue);
  check_product<float, Layout::kNN, 17, 15, 67>(epilogue);
  check_product<float, Layout::kNT, 18, 16, 64>(epilogue);
  check_product<float, Layout::kTN, 19, 14, 38>(epilogue);
}

}  // namespace

TEST(Tile, one_tile_of_every_depth) {
  static constexpr check::Sizes kSizes[] = {{4, 4, 1}, {4, 4, 2}, {4, 4, 3}, {4, 8, 4}, {4, 8, 7}};
  check_sizes<kSizes>();
}

TEST(Tile, of_four_terms_at_a_time) {
  static constexpr check::Sizes kSizes[] = {{4, 4, 8}, {8, 4, 56}, {4, 8, 64}, {20, 7, 56}};
  check_sizes<kSizes>();
}

// Products of many rows have other loops.
TEST(Tile, long_sums) {
  static constexpr check::Sizes kSizes[] = {{16, 4, 64}, {16, 8, 72}, {20, 4, 96}, {16, 8, 128}};
  check_sizes<kSizes>();
}

TEST(Tile, every_rest_of_a_long_sum) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (check_product<float, Layout::kNN, 16, 8, 60 + i>(), ...);
    (check_product<float, Layout::kNT, 16, 8, 60 + i>(), ...);
    (check_product<float, Layout::kTN, 16, 8, 28 + i>(), ...);
  }
  (std::make_integer_sequence<int, 13>{});
}

TEST(Tile, long_sums_of_every_rest_of_rows_and_columns) {
  static constexpr check::Sizes kSizes[] = {{17, 6, 64}, {18, 7, 72}, {19, 9, 96}, {23, 5, 99}};
  check_sizes<kSizes>();
  check_layouts<19, 10, 66, 119>();
}

TEST(Tile, every_rest_of_rows) {
  static constexpr check::Sizes kSizes[] = {{5, 8, 6}, {6, 8, 5},   {7, 12, 6}, {8, 4, 3},
                                            {9, 4, 2}, {10, 12, 4}, {11, 4, 9}};
  check_sizes<kSizes>();
}

TEST(Tile, every_rest_of_columns) {
  static constexpr check::Sizes kSizes[] = {{4, 5, 6}, {5, 6, 3}, {6, 7, 4}, {8, 13, 5}};
  check_sizes<kSizes>();
}

TEST(Tile, every_rest_of_blocks_of_eight_columns) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (check_product<float, Layout::kNN, 4 + i % 3, 8 + i, 3 + i>(), ...);
    (check_product<float, Layout::kNT, 5 + i % 3, 15 - i, 1 + i>(), ...);
  }
  (std::make_integer_sequence<int, 8>{});
}

TEST(Tile, heads_of_a_wider_matrix) {
  check_layouts<16, 8, 16, 24>();
  check_layouts<16, 16, 8, 24>();
}

TEST(Tile, strides_beyond_an_instruction) {
  check_layouts<5, 8, 4, 119>();
  check_layouts<5, 8, 4, 121>();
  check_layouts<8, 12, 5, 310>();
  check_layouts<4, 4, 3, 1100>();
}

TEST(Tile, every_epilogue) {
  attune::Rng rng(101);
  attune::Tensor<float, 1, 16> bias;
  check::fill(bias, rng);
  check_epilogue(kernels::Accumulate{});
  check_epilogue(kernels::Continue{});
  check_epilogue(kernels::Scale<float>{0.3f});
  check_epilogue(kernels::AddBias<float>{bias.data()});
}

TEST(Tile, a_sum_of_negative_zeros_is_positive_zero) {
  attune::Tensor<float, 4, 4> a, b{}, c;
  for (float& value : a.values) value = -1;
  kernels::gemm(attune::view(a), attune::view(b), attune::view(c));
  for (const float value : c.values) EXPECT_TRUE(check::same_bits(value, 0.0f));
}
