// expect: attune::kCopied: the compiler has to see the file, which attune_add_model() with ARRAY shows it
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;
