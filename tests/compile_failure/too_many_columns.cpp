// expect: attune::MatrixView: too many columns requested
#include <attune/core/tensor.hpp>

attune::Tensor<float, 2, 3> tensor{};
auto columns = attune::view(tensor).columns<4>(0);
