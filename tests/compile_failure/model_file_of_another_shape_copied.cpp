// expect: attune: this tensor has another shape in the file than in the model
// expect: InFile<4>
// expect: InModel<3>
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[48];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] = R"({"bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 16;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;
