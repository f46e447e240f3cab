// expect: attune::write_safetensors: a sink returns void; store errors in the sink
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;

attune::Status write(const Model::Parameters& parameters) {
  return attune::write_safetensors<attune::PyTorchModule<Model>>(
      parameters, [](const char*, std::size_t) { return false; });
}
