// expect: attune: pass the file's bytes, not its path, as a std::vector, a std::span or a std::string_view
// errors: 3  three mistakes
// a expect by gcc: read_safetensors<Names>(const char [18], expect by gcc: read_safetensors<Names>(const
// char*&, expect by gcc: read_safetensors<Names>(const std::string&,
#include <string>

#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names = attune::PyTorchModule<Model>;

attune::Status read(Model::Parameters& parameters) {
  return attune::read_safetensors<Names>("model.safetensors", parameters);
}
attune::Status read(const char* path, Model::Parameters& parameters) {
  return attune::read_safetensors<Names>(path, parameters);
}
attune::Status read(const std::string& path, Model::Parameters& parameters) {
  return attune::read_safetensors<Names>(path, parameters);
}
