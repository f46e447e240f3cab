// expect: attune::kCopied: the compiler must see the file; use attune_add_model() with ARRAY or QUANTIZE
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;
