// expect: attune::kQuantized, kPackedInt8: the compiler quantizes files of floats only; call pack() at
// errors: 2  the copy of such a file is none, either
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight.scale":{"dtype":"F32","shape":[3],"data_offsets":[12,24]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[24,30]}})",
    30)
constexpr auto& kWeights = attune::kPackedInt8<attune::PyTorchModule<Model>, File>;
