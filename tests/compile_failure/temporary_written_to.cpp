// expect: attune::MatrixView: what is written to a temporary is lost; give it a name
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use() { write(std::array<float, 6>{}); }
