// expect: attune::kernels::gemm: shapes do not chain; C[M, N] = A[M, K] * B[K, N]
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/gemm.hpp>

void use(attune::Tensor<float, 2, 3>& a, attune::Tensor<float, 2, 4>& b, attune::Tensor<float, 2, 4>& c) {
  attune::kernels::gemm(attune::view(a), attune::view(b), attune::view(c));
}
