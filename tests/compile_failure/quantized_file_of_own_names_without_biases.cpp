// expect: attune::kInFlash, refer_to_safetensors: weights of a file by OwnNames are [in, out]; leave it in floats
// kilobytes: 16  the message is in the visitor of a set, which GCC prints with all that calls it
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 4, .bias = false}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"weight":{"dtype":"I8","shape":[4,4],"data_offsets":[16,32]},"weight.scale":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}} )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 32;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;
