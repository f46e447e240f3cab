// expect: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

void use(std::span<float> samples) { attune::checked_view<attune::Tensor<float, 2, 3>>(samples); }
