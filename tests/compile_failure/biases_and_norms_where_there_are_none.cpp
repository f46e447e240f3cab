// expect: attune::BiasesAndNorms: the layer has no bias and no normalization to train
// errors: 2  then there is nothing to train, either
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8, .bias = false}>;
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::BiasesAndNorms<Layer, kLayer>> trainer;
