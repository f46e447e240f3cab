// expect: attune::MatrixView: the matrix has another scalar type; use the layer's (float unless you named one)
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const double (&rows)[2][3]) { read(rows); }
