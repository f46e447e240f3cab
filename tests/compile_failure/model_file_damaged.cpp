// expect: attune: the file is damaged or not a safetensors file; the type names the fault and the tensor at
// expect: Status::kTrailingBytes
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    40)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
