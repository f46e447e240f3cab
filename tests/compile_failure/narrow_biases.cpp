// expect: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
void infer(const Layer::ParametersOf<attune::Int8Weights>& parameters, const Layer::Input& x, Layer::Output& y) {
  Layer::forward(parameters, x, y);
}
