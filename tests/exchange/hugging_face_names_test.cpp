#include <attune/exchange/hugging_face_names.hpp>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/layers/layer_norm.hpp>

#include "exchange/expect_tensors.hpp"
#include "exchange/memory_file.hpp"

namespace {

using namespace attune;
using check::expect_tensors;

// A header as a checkpoint's, of tensors one behind the other.
class Header {
 public:
  Header() { add("{"); }
  void tensor(std::string_view name, std::string_view shape, std::size_t elements, int bytes = 4,
              std::string_view type = "F32") {
    if (length_ > 1) add(",");
    add("\""), add(name), add("\":{\"dtype\":\""), add(type), add("\",\"shape\":["), add(shape);
    add("],\"data_offsets\":["), add(size_), add(",");
    add(size_ += elements * static_cast<std::size_t>(bytes)), add("]}");
  }
  std::string_view close() {
    add("}");
    return {text_, length_};
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void add(std::string_view text) {
    for (const char character : text) {
      if (length_ < sizeof text_) text_[length_++] = character;
    }
  }
  void add(std::size_t number) {
    if (number >= 10) add(number / 10);
    const char digit = static_cast<char>('0' + number % 10);
    add(std::string_view(&digit, 1));
  }

  char text_[6000];
  std::size_t length_ = 0, size_ = 0;
};

struct Epsilon {
  double value;
};
template <Epsilon epsilon>
using Small = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 6, .num_heads = 2}, .d_ff = 8, .epsilon = epsilon.value}>;

// bert-base-uncased (https://huggingface.co/google-bert/bert-base-uncased), of whose 12 layers two.
constexpr EncoderLayerShape kBert{.attention = {.seq_len = 512, .d_model = 768, .num_heads = 12},
                                  .d_ff = 3072,
                                  .activation = Activation::kGelu,
                                  .epsilon = 1e-12};
using Bert = Sequential<Embedding<EmbeddingShape{.seq_len = 512, .vocabulary = 30522, .d_model = 768}>,
                        LearnedPositions<PositionShape{512, 768}>, LayerNorm<NormShape{512, 768, 1e-12}>,
                        Repeat<2, EncoderLayer<kBert>>>;
using BertNames =
    HuggingFaceModule<kBertLayer, Bert, "embeddings.word_embeddings", "embeddings.position_embeddings.weight",
                      "embeddings.LayerNorm", "encoder.layer">;

// google/vit-base-patch16-224: 196 patches and a class token.
constexpr EncoderLayerShape kVit{.attention = {.seq_len = 197, .d_model = 768, .num_heads = 12},
                                 .d_ff = 3072,
                                 .activation = Activation::kGelu,
                                 .norm = NormPlacement::kBefore,
                                 .epsilon = 1e-12};
using VitEncoder = Sequential<LearnedPositions<PositionShape{197, 768}>, Repeat<1, EncoderLayer<kVit>>,
                              LayerNorm<NormShape{197, 768, 1e-12}>>;
using VitEncoderNames = PyTorchPart<
    HuggingFaceModule<kVitLayer, VitEncoder, "embeddings.position_embeddings", "encoder.layer", "layernorm">,
    "vit">;
using VitPatches = Linear<LinearShape{.rows = 196, .d_in = 3 * 16 * 16, .d_out = 768}>;
using VitPatchNames = PyTorchPart<PyTorchModule<VitPatches>, "vit.embeddings.patch_embeddings.projection">;

void add_layer(Header& header, const EncoderLayerNames& names, std::string_view prefix) {
  const auto module = [&](const char* name, std::string_view shape, std::size_t rows, std::size_t elements) {
    char text[64];
    const auto full = [&](std::string_view last) {
      std::size_t length = prefix.copy(text, sizeof text);
      for (const char* from = name; *from != '\0'; ++from) text[length++] = *from;
      length += last.copy(text + length, sizeof text - length);
      return std::string_view(text, length);
    };
    header.tensor(full(".weight"), shape, elements);
    header.tensor(full(".bias"), rows == 768 ? "768" : "3072", rows);
  };
  for (const char* name : {names.query, names.key, names.value, names.output}) {
    module(name, "768,768", 768, 768 * 768);
  }
  module(names.linear1, "3072,768", 3072, 3072 * 768);
  module(names.linear2, "768,3072", 768, 3072 * 768);
  module(names.norm1, "768", 768, 768);
  module(names.norm2, "768", 768, 768);
}

}  // namespace

TEST(HuggingFaceNames, of_bert_layers) {
  expect_tensors<HuggingFaceModule<kBertLayer, Repeat<1, Small<Epsilon{1e-12}>>>>(
      "0.attention.output.LayerNorm.*[6] 0.attention.output.dense.*[6,6] "
      "0.attention.self.key.*[6,6] 0.attention.self.query.*[6,6] 0.attention.self.value.*[6,6] "
      "0.intermediate.dense.*[8,6] 0.output.LayerNorm.*[6] 0.output.dense.*[6,8]");
}
TEST(HuggingFaceNames, of_vit_layers) {
  expect_tensors<HuggingFaceModule<kVitLayer, Small<Epsilon{1e-12}>>>(
      "attention.attention.key.*[6,6] attention.attention.query.*[6,6] "
      "attention.attention.value.*[6,6] attention.output.dense.*[6,6] intermediate.dense.*[8,6] "
      "layernorm_after.*[6] layernorm_before.*[6] output.dense.*[6,8]");
}
TEST(HuggingFaceNames, of_distilbert_layers) {
  expect_tensors<HuggingFaceModule<kDistilBertLayer, Small<Epsilon{1e-12}>>>(
      "attention.k_lin.*[6,6] attention.out_lin.*[6,6] attention.q_lin.*[6,6] "
      "attention.v_lin.*[6,6] ffn.lin1.*[8,6] ffn.lin2.*[6,8] output_layer_norm.*[6] "
      "sa_layer_norm.*[6]");
}

TEST(HuggingFaceNames, of_timm_layers_have_packed_rows) {
  expect_tensors<HuggingFaceModule<kTimmVitLayer, Repeat<1, Small<Epsilon{1e-6}>>>>(
      "0.attn.proj.*[6,6] 0.attn.qkv.*[18,6] 0.mlp.fc1.*[8,6] 0.mlp.fc2.*[6,8] 0.norm1.*[6] "
      "0.norm2.*[6]");
}
TEST(HuggingFaceNames, of_timm_layers_with_layer_scale_have_its_full_name) {
  using Scale = LayerScale<ScaleShape{.rows = 4, .d_model = 6}>;
  using Attention = MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 6, .num_heads = 2}>;
  using Network = FeedForward<FeedForwardShape{.rows = 4, .d_model = 6, .d_ff = 8}>;
  using Layer = EncoderLayerOf<Sequential<Attention, Scale>, Sequential<Network, Scale>,
                               LayerNorm<NormShape{.rows = 4, .d_model = 6, .epsilon = 1e-6}>>;
  expect_tensors<HuggingFaceModule<kTimmVitLayer, Repeat<1, Layer>>>(
      "0.attn.proj.*[6,6] 0.attn.qkv.*[18,6] 0.ls1.gamma[6] 0.ls2.gamma[6] 0.mlp.fc1.*[8,6] "
      "0.mlp.fc2.*[6,8] 0.norm1.*[6] 0.norm2.*[6]");
}
TEST(HuggingFaceNames, of_gpt2_layers_have_packed_columns) {
  expect_tensors<HuggingFaceModule<kGpt2Layer, Repeat<1, Small<Epsilon{1e-5}>>>>(
      "0.attn.c_attn.bias[18] 0.attn.c_attn.weight[6,18] 0.attn.c_proj.*[6,6] 0.ln_1.*[6] "
      "0.ln_2.*[6] 0.mlp.c_fc.bias[8] 0.mlp.c_fc.weight[6,8] 0.mlp.c_proj.bias[6] "
      "0.mlp.c_proj.weight[8,6]");
}
TEST(HuggingFaceNames, of_grouped_heads_may_be_packed) {
  static constexpr EncoderLayerNames kNames{.output = "o",
                                            .linear1 = "mlp.0",
                                            .linear2 = "mlp.2",
                                            .norm1 = "n1",
                                            .norm2 = "n2",
                                            .qkv_weight = "in_proj_weight"};
  constexpr EncoderLayerShape kGrouped{
      .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2, .num_kv_heads = 1, .bias = false}, .d_ff = 3};
  expect_tensors<HuggingFaceModule<kNames, EncoderLayer<kGrouped>>>(
      "in_proj_weight[8,4] mlp.0.weight[3,4] mlp.2.weight[4,3] n1.weight[4] n2.weight[4] "
      "o.weight[4,4]");
}

TEST(HuggingFaceNames, of_conv1d_weights_are_in_by_out) {
  constexpr EncoderLayerShape kTiny{.attention = {.seq_len = 2, .d_model = 2, .num_heads = 1}, .d_ff = 3};
  using Layer = EncoderLayer<kTiny>;
  using Names = HuggingFaceModule<kGpt2Layer, Layer>;
  Layer::Parameters set{};
  set.self_attention.query.weight = {{1, 2, 3, 4}};
  set.self_attention.key.weight = {{5, 6, 7, 8}};
  set.self_attention.value.weight = {{9, 10, 11, 12}};
  set.self_attention.value.bias = {{13, 14}};
  set.feed_forward.linear1.weight = {{1, 2, 3, 4, 5, 6}};
  check::MemoryFile file, again;
  ASSERT_EQ(write_safetensors<Names>(set, file), Status::kOk);
  EXPECT_TRUE(file.contains(R"("attn.c_attn.weight":{"dtype":"F32","shape":[2,6],)"));
  const auto layout = safetensors_layout<Names>(file.text());
  const auto expect_values = [&](std::string_view name, std::initializer_list<float> values) {
    const std::size_t begin = layout.begin[detail::kStateDict<Names>.find(name)];
    EXPECT_EQ(std::memcmp(file.bytes + layout.body + begin, values.begin(), 4 * values.size()), 0);
  };
  expect_values("attn.c_attn.weight", {1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12});
  expect_values("attn.c_attn.bias", {0, 0, 0, 0, 13, 14});
  expect_values("mlp.c_fc.weight", {1, 2, 3, 4, 5, 6});

  Layer::Parameters read{};
  ASSERT_EQ(read_safetensors<Names>(file, read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, set));
  ASSERT_EQ(rewrite_safetensors<Names>(file, set, again), Status::kOk);
  EXPECT_TRUE(again.text() == file.text());
}

TEST(HuggingFaceNames, of_a_llama_with_a_tied_head) {
  constexpr AttentionShape kAttention{.seq_len = 4,
                                      .d_model = 6,
                                      .num_heads = 3,
                                      .num_kv_heads = 1,
                                      .bias = false,
                                      .rotary_dim = 2,
                                      .query_key_norm = QueryKeyNorm::kRootMeanSquare,
                                      .query_key_epsilon = 1e-6};
  using Norm = RmsNorm<NormShape{4, 6, 1e-6}>;
  using Block = EncoderLayerOf<MultiHeadAttention<kAttention>,
                               SwiGlu<FeedForwardShape{.rows = 4, .d_model = 6, .d_ff = 8, .bias = false}>,
                               Norm, BranchOptions{.norm = NormPlacement::kBefore}>;
  using Llama = Tied<Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 5, .d_model = 6}>,
                     Sequential<Repeat<1, Block>, Norm>>;
  expect_tensors<HuggingFaceModule<kLlamaLayer, Llama, "model.embed_tokens", "model.layers", "model.norm">>(
      "model.embed_tokens.weight[5,6] model.layers.0.input_layernorm.weight[6] "
      "model.layers.0.mlp.down_proj.weight[6,8] model.layers.0.mlp.gate_proj.weight[8,6] "
      "model.layers.0.mlp.up_proj.weight[8,6] model.layers.0.post_attention_layernorm.weight[6] "
      "model.layers.0.self_attn.k_norm.weight[2] model.layers.0.self_attn.k_proj.weight[2,6] "
      "model.layers.0.self_attn.o_proj.weight[6,6] model.layers.0.self_attn.q_norm.weight[2] "
      "model.layers.0.self_attn.q_proj.weight[6,6] model.layers.0.self_attn.v_proj.weight[2,6] "
      "model.norm.weight[6]");
}

TEST(HuggingFaceNames, of_a_checkpoint_of_bert) {
  Header header;
  header.tensor("bert.embeddings.position_ids", "1,512", 512, 8, "I64");
  header.tensor("bert.embeddings.word_embeddings.weight", "30522,768", 30522 * 768);
  header.tensor("bert.embeddings.position_embeddings.weight", "512,768", 512 * 768);
  header.tensor("bert.embeddings.token_type_embeddings.weight", "2,768", 2 * 768);
  header.tensor("bert.embeddings.LayerNorm.weight", "768", 768);
  header.tensor("bert.embeddings.LayerNorm.bias", "768", 768);
  add_layer(header, kBertLayer, "bert.encoder.layer.0.");
  add_layer(header, kBertLayer, "bert.encoder.layer.1.");
  header.tensor("bert.pooler.dense.weight", "768,768", 768 * 768);
  header.tensor("bert.pooler.dense.bias", "768", 768);
  header.tensor("cls.predictions.bias", "30522", 30522);
  const std::string_view text = header.close();
  const auto layout = safetensors_layout<PyTorchPart<BertNames, "bert">>(text, header.size());
  EXPECT_EQ(layout.status, Status::kOk);
  EXPECT_EQ(safetensors_layout<BertNames>(text, header.size()).status, Status::kUnknownTensor);
}

TEST(HuggingFaceNames, of_a_vit_checkpoint_with_convolved_patches) {
  Header header;
  header.tensor("vit.embeddings.cls_token", "1,1,768", 768);
  header.tensor("vit.embeddings.position_embeddings", "1,197,768", 197 * 768);
  header.tensor("vit.embeddings.patch_embeddings.projection.weight", "768,3,16,16", 768 * 768);
  header.tensor("vit.embeddings.patch_embeddings.projection.bias", "768", 768);
  add_layer(header, kVitLayer, "vit.encoder.layer.0.");
  header.tensor("vit.layernorm.weight", "768", 768);
  header.tensor("vit.layernorm.bias", "768", 768);
  header.tensor("classifier.weight", "1000,768", 1000 * 768);
  const std::string_view text = header.close();
  EXPECT_EQ(safetensors_layout<VitEncoderNames>(text, header.size()).status, Status::kOk);
  EXPECT_EQ(safetensors_layout<VitPatchNames>(text, header.size()).status, Status::kOk);
}
