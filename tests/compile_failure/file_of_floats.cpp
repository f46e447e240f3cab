// expect: attune: a file is an array of char, unsigned char or std::byte
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status read(const float (&file)[100], Model::Parameters& parameters) {
  return attune::read_safetensors<attune::PyTorchModule<Model>>(file, parameters);
}
