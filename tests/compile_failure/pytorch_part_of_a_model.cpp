// expect: attune: a model does not say what a file calls its tensors; names do: PyTorchModule<Model
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Part = attune::PyTorchPart<Model, "body">;
static_assert(attune::SafetensorsLayout<Part>::kTensors == 2);
