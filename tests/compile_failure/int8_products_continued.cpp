// expect: attune::kernels::Int8Products: a part of the terms has its own scales, so sums of integers do not continue; multiply all terms in one call, or add blocks with NextBlock
#include <attune/attune.hpp>

attune::Tensor<float, 4, 20> a;
attune::Tensor<float, 20, 5> b;
attune::Tensor<float, 4, 5> c;

void multiply_block() {
  attune::kernels::Int8Products::gemm(view(a), view(b), view(c), attune::kernels::Continue{});
}
