// expect: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const std::array<float, 5>& numbers) { read(numbers); }
