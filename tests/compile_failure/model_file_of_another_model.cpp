// expect: attune: the file has a tensor that the model lacks: use the model's file, other names in
// expect by gcc: TensorNamed<attune::v1_0_unfused::detail::Name<6>{"scale"}>
// expect by clang: TensorNamed<'s', 'c', 'a', 'l', 'e'>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"scale":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})",
    24)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
