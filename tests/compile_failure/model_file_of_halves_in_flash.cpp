// expect: attune::kInFlash: this tensor has the first type in the file and needs the second
// expect: ElementType::kF16
// expect: ElementType::kF32
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[48];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"weight":{"dtype":"F16","shape":[3,2],"data_offsets":[6,18]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 18;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
