// expect: attune::BiasesAndNorms: the layer, and each one in it, needs ParametersOf<Matrix, Vector>
#include "layer_without_sets.hpp"

using Model = attune::Sequential<ByHand, ByHand::Own>;
constexpr Model::Parameters kModel{};
attune::BiasesAndNorms<Model, kModel>::Parameters parameters;
