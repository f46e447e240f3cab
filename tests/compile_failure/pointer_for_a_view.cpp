// expect: attune::MatrixView: a pointer does not say how many numbers stand there; check their number with attune::checked_view, or vouch for it with MatrixView{pointer}
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const float* numbers) { read(numbers); }
