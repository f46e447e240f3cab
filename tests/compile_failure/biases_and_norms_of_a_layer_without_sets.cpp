// expect: attune::BiasesAndNorms: the layer and its parts need ParametersOf<Matrix, Vector>, for sets without
#include "layer_without_sets.hpp"

using Model = attune::Sequential<ByHand, ByHand::Own>;
constexpr Model::Parameters kModel{};
attune::BiasesAndNorms<Model, kModel>::Parameters parameters;
