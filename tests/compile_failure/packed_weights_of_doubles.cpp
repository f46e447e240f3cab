// expect: packed int8 weights need a model in float; use Int8Weights for double
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}, double>;
static Layer::ParametersOf<attune::PackedInt8Weights, attune::Tensor> base;
