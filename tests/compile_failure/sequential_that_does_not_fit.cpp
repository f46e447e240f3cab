// expect: the output of a layer does not fit the input of the next
// expect: output_fits_input
// expect by clang: 8, 16, 8, 32>
// expect by gcc: int output_rows = 8; int output_cols = 16; int input_rows = 8; int input_cols = 32
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>

using Embed = attune::Linear<attune::LinearShape{8, 8, 16}>;
using Head = attune::Linear<attune::LinearShape{8, 32, 4}>;
attune::Sequential<Embed, Head>::Parameters parameters;
