// expect: attune::Tensor: rows and cols must be positive; give the layer positive sizes
#include <attune/core/tensor.hpp>

attune::Tensor<float, 0, 4> tensor;
