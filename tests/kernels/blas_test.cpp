#include <attune/kernels/ops/gemm.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

TEST(Blas, only_large_products_use_blas_and_only_if_enabled) {
  EXPECT_FALSE(kernels::goes_to_blas(511, 512, 512));
  EXPECT_EQ(kernels::goes_to_blas(512, 512, 512), ATTUNE_BLAS != 0);
}

}  // namespace
