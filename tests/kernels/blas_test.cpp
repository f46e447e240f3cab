#include <attune/kernels/ops/gemm.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

TEST(Blas, only_large_products_go_there_and_only_when_asked) {
  EXPECT_FALSE(kernels::goes_to_blas(511, 512, 512));
  EXPECT_EQ(kernels::goes_to_blas(512, 512, 512), ATTUNE_BLAS != 0);
}

}  // namespace
