// expect: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
// expect by gcc: TensorNamed<attune::v1_0_unfused::detail::Name<7>{"weight"}>
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[12,18]}} )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 18;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
