// expect: attune::MatrixView: the destination is a temporary; store it in a variable
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use() { write(std::array<float, 6>{}); }
