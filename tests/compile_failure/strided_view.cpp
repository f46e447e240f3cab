// expect: attune::MatrixView: the matrix is strided; copy it into a Tensor or a dense matrix
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(attune::MatrixView<float, 2, 6> wide) { read(wide.columns<3>(0)); }
