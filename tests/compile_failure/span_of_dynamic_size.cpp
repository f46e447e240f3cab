// expect: attune::MatrixView: the size is known only at run time; check it with attune::checked_view, or fix it at compile time
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(std::span<const float> numbers) { read(numbers); }
