// expect: attune::PyTorchPart: put PyTorchFile around PyTorchPart, with the file's full names
// errors: 3  the function that does not take it is told, too
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using File = attune::PyTorchFile<attune::PyTorchModule<Model>, attune::TensorShape<"weight", 3, 2, 1>>;
Model::Parameters parameters;
attune::Status status =
    attune::read_safetensors<attune::PyTorchPart<File, "vit">>(std::string_view(), parameters);
