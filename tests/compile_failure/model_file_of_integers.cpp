// expect: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"I32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
