// expect: attune::AdditiveMask: the matrix is a temporary, gone before the mask is used
#include <attune/attune.hpp>

const attune::AdditiveMask mask(attune::Tensor<float, 4, 4>{});
