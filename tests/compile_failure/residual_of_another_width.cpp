// expect: the output of a layer does not fit the input of the next
// expect by clang: 8, 16, 8, 8>
// expect by gcc: int output_rows = 8; int output_cols = 16; int input_rows = 8; int input_cols = 8
#include <attune/layers/linear.hpp>
#include <attune/models/residual.hpp>

attune::Residual<attune::Linear<attune::LinearShape{8, 8, 16}>> layer;
