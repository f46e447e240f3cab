// expect: attune::refer_to_safetensors: the file is a temporary and does not outlive the parameters; store it
// a name
#include <vector>

#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
std::vector<char> load();

attune::Status refer(Model::ParametersOf<attune::TransposedReference, attune::Reference>& set) {
  return attune::refer_to_safetensors<attune::PyTorchModule<Model>>(load(), set);
}
