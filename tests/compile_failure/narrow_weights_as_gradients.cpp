// expect: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
// errors: 2  the product that cannot write to them is told, too
// kilobytes: 15  the way from the call to the layer
// ParametersOf<Tensor>, then quantize() it
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Narrow = Layer::ParametersOf<attune::Int8Weights, attune::Tensor>;
void learn(const Layer::Parameters& parameters, const Layer::Input& x, const Layer::Output& dy, Narrow& gradients) {
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
}
