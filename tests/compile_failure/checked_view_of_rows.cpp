// expect: attune::checked_view: the argument is a range of rows; pass the numbers, std::span(&rows[0][0], count)
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use(std::span<const std::array<float, 3>> rows) {
  return attune::checked_view<attune::Tensor<float, 2, 3>>(rows).status;
}
