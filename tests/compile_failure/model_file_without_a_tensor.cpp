// expect: attune: the file lacks this tensor: use the model's file, or other names in PyTorchModule
// expect by gcc: TensorNamed<attune::v1_0_unfused::detail::Name<7>{"weight"}>
// expect by clang: TensorNamed<'w', 'e', 'i', 'g', 'h', 't'>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
    12)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
