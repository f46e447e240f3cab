// expect: attune: pass names, not a model: PyTorchModule<Model
// expect: attune: this type is not a model; pass the layer, not its parameters or its trainer
// expect: attune: this is not a set of parameters; pass trainer.parameters(), or call trainer.load()
// expect: attune::write_safetensors: a sink is called as sink(const char* bytes, std::size_t count)
// errors: 8  four mistakes, each with the function or class that does not take it
// kilobytes: 11  the way from the call to the layer
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names = attune::PyTorchModule<Model>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError>;
template <class Of>
attune::Status read(std::string_view file, Model::Parameters& parameters) {
  return attune::read_safetensors<Of>(file, parameters);
}
template attune::Status read<Model>(std::string_view, Model::Parameters&);

using OfASet = attune::OwnNames<Model::Parameters>;

attune::Status write(const Trainer& trainer) {
  return attune::write_safetensors<Names>(trainer, [](const char*, std::size_t) {});
}
attune::Status write(const Model::Parameters& parameters, int& port) {
  return attune::write_safetensors<Names>(parameters, port);
}
