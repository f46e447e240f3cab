// expect: attune::kInFlash: biases or norms of the file are quantized; leave files by OwnNames in floats
#include <attune/attune.hpp>

using Model = attune::LayerNorm<attune::NormShape{1, 4}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"I8","shape":[1,4],"data_offsets":[8,12]},"bias.scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"weight":{"dtype":"I8","shape":[1,4],"data_offsets":[12,16]},"weight.scale":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}  )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 16;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;
