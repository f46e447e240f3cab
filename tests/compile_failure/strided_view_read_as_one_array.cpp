// expect: attune: this needs a dense matrix; copy the strided view into a Tensor
#include <attune/kernels/matrix_view.hpp>

const float* use(attune::MatrixView<float, 2, 6> wide) { return attune::dense_view(wide.columns<3>(0)).data; }
