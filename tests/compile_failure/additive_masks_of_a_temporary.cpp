// expect: attune::AdditiveMask: the matrix is a temporary and does not outlive the mask; store it in a
#include <attune/attune.hpp>

attune::Tensor<float, 8, 4> biases();
const auto mask = attune::additive_mask_per_head<2>(biases());
