// expect: attune::PyTorchModule: two tensors have the same name, or a name has a character that JSON escapes
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 3}>,
                                 attune::Linear<attune::LinearShape{1, 3, 2}>>;
using Names = attune::PyTorchModule<Model, "head", "head">;
Model::Parameters parameters;
const attune::Status status = attune::read_safetensors<Names>(std::string_view("{}"), parameters);
