// expect: attune::MatrixView: what is written to is const; pass what may be changed
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use(const float (&rows)[2][3]) { write(rows); }
