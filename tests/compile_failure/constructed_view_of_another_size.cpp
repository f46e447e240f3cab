// expect: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

auto use(const float (&numbers)[5]) { return attune::MatrixView<const float, 2, 3>(numbers); }
