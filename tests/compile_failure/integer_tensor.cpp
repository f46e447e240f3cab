// expect: attune::Tensor: the scalar must be float or double
#include <attune/core/tensor.hpp>

attune::Tensor<int, 2, 4> tensor;
