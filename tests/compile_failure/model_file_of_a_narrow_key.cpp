// expect: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
// expect by gcc: TensorNamed<attune::v1_0_unfused::detail::Name<7>{"bias_k"}>
#include <attune/attune.hpp>

using Model = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 1, .d_model = 2, .num_heads = 1, .bias = false, .add_bias_kv = true}>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias_k.scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"bias_v":{"dtype":"F32","shape":[1,1,2],"data_offsets":[4,12]},"in_proj_weight":{"dtype":"F32","shape":[6,2],"data_offsets":[12,60]},"out_proj.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[60,76]},"bias_k":{"dtype":"I8","shape":[1,1,2],"data_offsets":[76,78]}}    )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 78;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;
