// expect: attune: what reads all numbers of a matrix at once needs a dense matrix; copy a strided view into a Tensor
#include <attune/kernels/matrix_view.hpp>

const float* use(attune::MatrixView<float, 2, 6> wide) { return attune::dense_view(wide.columns<3>(0)).data; }
