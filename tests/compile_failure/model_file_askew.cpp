// expect: attune::kInFlash: this tensor is misaligned; save the file again with safetensors, or copy it with
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}}  )",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
