// expect: attune: this tensor has different shapes in the file and in the model
// expect: InFile<4>
// expect: InModel<3>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
    16)
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;
