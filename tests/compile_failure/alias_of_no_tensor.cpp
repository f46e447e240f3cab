// expect: attune::PyTorchFile: a TensorAlias or TensorShape names no tensor of the model, or has the wrong
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names =
    attune::PyTorchFile<attune::PyTorchModule<Model, "head">, attune::TensorAlias<"tied", "body.weight">>;
Model::Parameters parameters;
attune::Status status = attune::read_safetensors<Names>(std::string_view(), parameters);
