#include <attune/exchange/peft_names.hpp>

#include <attune/core/bfloat16_tensor.hpp>
#include <attune/exchange/hugging_face_names.hpp>
#include <attune/exchange/own_names.hpp>
#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/layers/convolution.hpp>

#include "exchange/expect_tensors.hpp"
#include "exchange/memory_file.hpp"

namespace {

using namespace attune;

constexpr EncoderLayerShape kBlock{
    .attention = {.seq_len = 2, .d_model = 2, .num_heads = 1}, .d_ff = 3, .epsilon = 1e-12};
using Encoder = Repeat<1, EncoderLayer<kBlock>>;
using Head = Linear<LinearShape{.rows = 2, .d_in = 2, .d_out = 3, .bias = false}>;
constexpr Encoder::Parameters kEncoder{};
using Model = Sequential<Adapted<Encoder, kEncoder, LowRank{.rank = 1, .alpha = 2}>, Head>;
// The names of https://huggingface.co/docs/peft/developer_guides/checkpoint, and a head of modules_to_save.
using Module = HuggingFaceModule<kBertLayer, Model, "encoder.layer", "classifier">;
using Names = PeftNames<Module>;

constexpr std::string_view kHeader =
    R"({"base_model.model.classifier.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
    R"("base_model.model.encoder.layer.0.attention.self.query.lora_A.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[24,32]},)"
    R"("base_model.model.encoder.layer.0.attention.self.query.lora_B.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[32,40]},)"
    R"("base_model.model.encoder.layer.0.attention.self.value.lora_A.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[40,48]},)"
    R"("base_model.model.encoder.layer.0.attention.self.value.lora_B.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[48,56]}})";

check::MemoryFile adapter() {
  check::MemoryFile file;
  file.start<float>(kHeader, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  return file;
}

}  // namespace

TEST(PeftNames, are_the_documented_ones_and_come_back_to_the_bit) {
  const check::MemoryFile file = adapter();
  Model::Parameters set{};
  ASSERT_EQ(read_safetensors<Names>(file, set), Status::kOk);
  const auto& attention = set.layer<0>().layers[0].self_attention;
  EXPECT_TRUE(check::same_bits(attention.query.weight.a, Tensor<float, 2, 1>{{7, 8}}));
  EXPECT_TRUE(check::same_bits(attention.query.weight.b, Tensor<float, 1, 2>{{9, 10}}));
  EXPECT_TRUE(check::same_bits(attention.value.weight.b, Tensor<float, 1, 2>{{13, 14}}));
  EXPECT_TRUE(check::same_bits(set.layer<1>().weight, Tensor<float, 2, 3>{{1, 3, 5, 2, 4, 6}}));
  check::MemoryFile written, rewritten;
  ASSERT_EQ(write_safetensors<Names>(set, written), Status::kOk);
  EXPECT_TRUE(written.text() == file.text());
  ASSERT_EQ(rewrite_safetensors<Names>(file, set, rewritten), Status::kOk);
  EXPECT_TRUE(rewritten.text() == file.text());
}

TEST(PeftNames, of_convolutions_are_weights_of_convolutions) {
  using Convolution = Conv1d<Conv1dShape{.seq_len = 4, .d_in = 2, .d_out = 3, .kernel = 2}>;
  using Image = Conv2d<Conv2dShape{
      .height = 2, .width = 3, .d_in = 3, .d_out = 4, .kernel_height = 2, .kernel_width = 1, .bias = false}>;
  static constexpr Convolution::Parameters kConvolution{};
  static constexpr Image::Parameters kImage{};
  using Convolved = Adapted<Convolution, kConvolution, LowRank{.rank = 1, .roles = Role::kProjections}>;
  using OfImage = Adapted<Image, kImage, LowRank{.rank = 2, .roles = Role::kProjections}>;
  check::MemoryFile file, image;
  ASSERT_EQ((write_safetensors<PeftNames<PyTorchModule<Convolved>>>(Convolved::Parameters{}, file)),
            Status::kOk);
  EXPECT_TRUE(file.text().find(R"("base_model.model.lora_A.weight":{"dtype":"F32","shape":[1,2,2])") !=
              std::string_view::npos);
  EXPECT_TRUE(file.text().find(R"("base_model.model.lora_B.weight":{"dtype":"F32","shape":[3,1,1])") !=
              std::string_view::npos);
  ASSERT_EQ((write_safetensors<PeftNames<PyTorchModule<OfImage>>>(OfImage::Parameters{}, image)),
            Status::kOk);
  EXPECT_TRUE(image.text().find(R"(lora_A.weight":{"dtype":"F32","shape":[2,3,2,1])") !=
              std::string_view::npos);
  EXPECT_TRUE(image.text().find(R"(lora_B.weight":{"dtype":"F32","shape":[4,2,1,1])") !=
              std::string_view::npos);
  OfImage::Parameters set{};
  EXPECT_EQ((read_safetensors<PeftNames<PyTorchModule<OfImage>>>(image, set)), Status::kOk);
}

TEST(PeftNames, merge_to_the_weight_that_peft_computes) {
  Model::Parameters set{};
  ASSERT_EQ(read_safetensors<Names>(adapter(), set), Status::kOk);
  check::MemoryFile merged;
  ASSERT_EQ(write_safetensors<Module>(set, merged), Status::kOk);
  const auto layout = safetensors_layout<Module>(merged.text());
  const int query = detail::kStateDict<Module>.find("encoder.layer.0.attention.self.query.weight");
  constexpr float kExpected[] = {126, 144, 140, 160};  // 2/1 · B·A, [out, in]
  EXPECT_EQ(std::memcmp(merged.bytes + layout.body + layout.begin[query], kExpected, sizeof kExpected), 0);
}

TEST(PeftNames, name_factors_in_bf16_which_merge_as_floats) {
  detail::SetOf<Model, Bfloat16Tensor, Tensor> set{};  // the parameters of StochasticBfloat16
  ASSERT_EQ(read_safetensors<Names>(adapter(), set), Status::kOk);
  const Bfloat16 b = set.layer<0>().layers[0].self_attention.query.weight.b(0, 1);
  EXPECT_EQ(float(b), 10.0f);
  check::MemoryFile written, merged, expected;
  ASSERT_EQ(write_safetensors<Names>(set, written), Status::kOk);
  EXPECT_TRUE(written.text() == adapter().text());
  ASSERT_EQ(write_safetensors<Module>(set, merged), Status::kOk);
  Model::Parameters floats{};
  ASSERT_EQ(read_safetensors<Names>(adapter(), floats), Status::kOk);
  ASSERT_EQ(write_safetensors<Module>(floats, expected), Status::kOk);
  EXPECT_TRUE(merged.text() == expected.text());
}

TEST(PeftNames, of_another_rank_or_other_modules_are_refused_by_name) {
  using Wider = Sequential<Adapted<Encoder, kEncoder, LowRank{.rank = 2}>, Head>;
  using Other = Sequential<Adapted<Encoder, kEncoder, LowRank{.rank = 1, .roles = Role::kQueries}>, Head>;
  Wider::Parameters wider{};
  Other::Parameters other{};
  const check::MemoryFile file = adapter();
  const auto of_rank =
      read_safetensors<PeftNames<HuggingFaceModule<kBertLayer, Wider, "encoder.layer", "classifier">>>(file,
                                                                                                       wider);
  EXPECT_EQ(of_rank.status, Status::kInvalidShape);
  EXPECT_TRUE(of_rank.tensor == "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight");
  const auto of_modules =
      read_safetensors<PeftNames<HuggingFaceModule<kBertLayer, Other, "encoder.layer", "classifier">>>(file,
                                                                                                       other);
  EXPECT_EQ(of_modules.status, Status::kUnknownTensor);
  EXPECT_TRUE(of_modules.tensor == "base_model.model.encoder.layer.0.attention.self.value.lora_A.weight");
}
