// expect: attune::kInFlash: weights of a file by OwnNames are [in, out]; leave it in floats, and use kQuantized or kPackedInt8
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 4}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F32","shape":[1,4],"data_offsets":[8,24]},"weight":{"dtype":"I8","shape":[2,4],"data_offsets":[24,32]},"weight.scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 32;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;
