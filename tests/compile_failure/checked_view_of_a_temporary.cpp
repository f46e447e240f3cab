// expect: attune::checked_view: this is gone before its view is used; give it a name
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use() { return attune::checked_view<attune::Tensor<float, 2, 3>>(std::array<float, 6>{}).status; }
