// expect: attune: pass names, not a model: PyTorchModule<Model, …>, PyTorchPart, HuggingFaceModule, or
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Part = attune::PyTorchPart<Model, "body">;
static_assert(attune::SafetensorsLayout<Part>::kTensors == 2);
