// expect: attune::refer_to_safetensors: PyTorch stores linear weights transposed; use
// kilobytes: 10  the way from the call to the layer
// take ParametersOf<TransposedReference, Reference>
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status refer(std::string_view file, Model::ParametersOf<attune::Reference>& parameters) {
  return attune::refer_to_safetensors<attune::PyTorchModule<Model>>(file, parameters);
}
