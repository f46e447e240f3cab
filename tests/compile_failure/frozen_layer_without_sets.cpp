// expect: attune::Frozen: after a trained layer, this layer and its parts need ParametersOf<Matrix, Vector>
// kilobytes: 16  the way from the call to the layer
#include "layer_without_sets.hpp"

using Model = attune::Sequential<ByHand::Own, attune::Frozen<ByHand, kByHand>>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }
