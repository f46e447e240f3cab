// expect: attune::LayerNorm, RmsNorm: rows and d_model must be positive; set both in NormShape
#include <attune/layers/layer_norm.hpp>

attune::LayerNorm<attune::NormShape{.d_model = 4}>::Parameters parameters;
