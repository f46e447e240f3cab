// expect: attune: this tensor has different shapes in the file and in the model
// expect: InFile<2, 3>
// expect: InModel<3, 2>
// expect by gcc: TensorNamed<attune::v1_0_unfused::detail::Name<7>{"weight"}>
// expect by clang: TensorNamed<'w', 'e', 'i', 'g', 'h', 't'>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
