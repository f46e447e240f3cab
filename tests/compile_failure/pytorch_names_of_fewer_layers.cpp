// expect: attune::PyTorchModule: give one name for each layer with parameters, in order, nested Sequentials
// it, in their order
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 3}>,
                                 attune::Linear<attune::LinearShape{1, 3, 2}>>;
using Names = attune::PyTorchModule<Model, "embed">;
static_assert(attune::SafetensorsLayout<Names>::kTensors == 4);
