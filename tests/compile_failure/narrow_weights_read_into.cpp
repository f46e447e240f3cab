// expect: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
// errors: 3  the two places that cannot write to them are told, too
// kilobytes: 27  the way from the call to the layer
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status load(std::string_view file, Layer::ParametersOf<attune::Int8Weights, attune::Tensor>& parameters) {
  return attune::read_safetensors<attune::PyTorchModule<Layer>>(file, parameters);
}
