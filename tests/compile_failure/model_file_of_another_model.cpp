// expect: attune: the model has no tensor of this name
// expect by gcc: TensorNamed<attune::v0_1_unfused::detail::Name<6>{"scale"}>
// expect by clang: TensorNamed<'s', 'c', 'a', 'l', 'e'>
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[48];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"scale":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 24;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
