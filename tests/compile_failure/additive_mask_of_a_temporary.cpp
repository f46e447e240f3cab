// expect: attune::AdditiveMask: the matrix is a temporary and does not outlive the mask; store it in a
#include <attune/attune.hpp>

const attune::AdditiveMask mask(attune::Tensor<float, 4, 4>{});
