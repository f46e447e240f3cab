// expect: attune::MatrixView: the destination is const; pass a matrix that can change
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use(const float (&rows)[2][3]) { write(rows); }
