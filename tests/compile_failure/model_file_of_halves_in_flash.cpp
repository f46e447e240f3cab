// expect: attune::kInFlash: this tensor has the first type and needs the second; name it in WEIGHTS or FLOATS
// expect: ElementType::kF16
// expect: ElementType::kF32
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"weight":{"dtype":"F16","shape":[3,2],"data_offsets":[6,18]}})",
    18)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
