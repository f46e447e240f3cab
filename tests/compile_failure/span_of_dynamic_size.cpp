// expect: attune::MatrixView: only run time knows the size of this; check it with attune::checked_view, or fix it at compile time
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(std::span<const float> numbers) { read(numbers); }
