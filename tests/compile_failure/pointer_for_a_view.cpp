// expect: attune::MatrixView: a pointer has no size; check it with attune::checked_view, or promise the size with MatrixView{pointer}
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const float* numbers) { read(numbers); }
