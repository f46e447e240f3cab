// expect: attune::MatrixView: the matrix and the layer have different scalar types; the layer's is float unless you chose another
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const double (&rows)[2][3]) { read(rows); }
