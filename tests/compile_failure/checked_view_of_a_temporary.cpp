// expect: attune::checked_view: the temporary does not outlive its view; store it in a variable
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use() { return attune::checked_view<attune::Tensor<float, 2, 3>>(std::array<float, 6>{}).status; }
