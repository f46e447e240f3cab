#include <attune/attention/block_skipping.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

#include "check.hpp"

namespace {

namespace detail = attune::detail;
namespace kernels = attune::kernels;
using attune::Tensor;
using attune::view;

}  // namespace

TEST(InBlocks, visits_every_row_once_up_to_the_used_ones) {
  for (int used = 0; used <= 11; ++used) {
    int end = 0;
    detail::in_blocks<11, 4>(
        [&]<int rows>(int first) {
          EXPECT_EQ(first, end);
          EXPECT_EQ(rows, first == 8 ? 3 : 4);
          end = first + rows;
        },
        used);
    EXPECT_EQ(end, used == 0 ? 0 : used <= 4 ? 4 : used <= 8 ? 8 : 11);
  }
}

TEST(LeftOutKeys, start_at_the_end) {
  constexpr int kKeys = 3 * kernels::kKeyBlock + 1;
  for (int end = 0; end <= kKeys; ++end) {
    int visited = 0, left_out = 0;
    detail::for_keys<kKeys>(
        0, end, [&]<int keys>(int) { visited += keys; }, [&]<int keys>(int) { left_out += keys; });
    EXPECT_EQ(visited + left_out, kKeys);
    EXPECT_TRUE(visited >= end && visited < end + kernels::kKeyBlock);
  }
}

// What is left out is zero, and not read: a NaN stands there in the other factor.
TEST(LeftOutKeys, of_a_product_have_the_bits_of_all_terms) {
  constexpr int kTerms = kernels::kDepthBlock + kernels::kKeyBlock + 5, kRows = 3, kCols = 5;
  attune::Rng rng(3);
  static Tensor<float, kRows, kTerms> a;
  static Tensor<float, kTerms, kCols> b;
  for (const int end :
       {0, kernels::kKeyBlock, kernels::kDepthBlock, kernels::kDepthBlock + kernels::kKeyBlock}) {
    check::fill(a, rng);
    check::fill(b, rng);
    for (int i = 0; i < kRows; ++i) {
      for (int k = end; k < kTerms; ++k) a(i, k) = 0;
    }
    Tensor<float, kRows, kCols> all, some;
    kernels::gemm(view(a), view(b), view(all));
    for (int k = end; k < kTerms; ++k) b(k, 0) = std::numeric_limits<float>::quiet_NaN();
    detail::product_of_some(
        view(a), view(b), view(some), kernels::DenseTerms{}, [&](int first, int) { return first < end; },
        kernels::Assign{});
    EXPECT_TRUE(check::same_bits(some, all)) << end;
  }
}
