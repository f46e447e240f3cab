// expect: attune::LayerNorm, RmsNorm: epsilon is too small for the scalar, which rounds it to 0
#include <attune/attune.hpp>

using Norm = attune::LayerNorm<attune::NormShape{.rows = 4, .d_model = 8, .epsilon = 1e-50}>;
Norm::Tape tape;
