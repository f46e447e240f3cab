#include <attune/exchange/pytorch_layers.hpp>

#include <attune/exchange/hugging_face_names.hpp>
#include <attune/exchange/pytorch_names.hpp>
#include <attune/models/encoder_layer.hpp>

#include "exchange/expect_tensors.hpp"

using namespace attune;
using check::expect_tensors, check::kDecoder, check::kEncoder;

TEST(PyTorchLayers, match_the_modules_of_pytorch) {
  expect_tensors<PyTorchModule<Linear<LinearShape{5, 3, 7}>>>("*[7,3]");
  expect_tensors<PyTorchModule<Linear<LinearShape{5, 3, 7, false}>>>("weight[7,3]");
  expect_tensors<PyTorchModule<LayerNorm<NormShape{5, 6}>>>("*[6]");
  expect_tensors<PyTorchModule<RmsNorm<NormShape{5, 6}>>>("weight[6]");
  expect_tensors<PyTorchModule<Embedding<EmbeddingShape{.seq_len = 5, .vocabulary = 9, .d_model = 6}>>>(
      "weight[9,6]");
  expect_tensors<PyTorchModule<TokenType<TokenTypeShape{.seq_len = 5, .d_model = 6, .types = 2}>>>(
      "weight[2,6]");
  expect_tensors<PyTorchModule<FeedForward<FeedForwardShape{.rows = 5, .d_model = 6, .d_ff = 7}>>>(
      "linear1.*[7,6] linear2.*[6,7]");
}

TEST(PyTorchLayers, of_attention_are_packed_unless_keys_or_values_have_another_width) {
  constexpr AttentionShape kSelf{.seq_len = 5, .d_model = 6, .num_heads = 2};
  constexpr AttentionShape kCross{.seq_len = 5, .d_model = 6, .num_heads = 2, .d_key = 4, .bias = false};
  using Self = PyTorchModule<MultiHeadAttention<kSelf>>;
  expect_tensors<Self>("in_proj_bias[18] in_proj_weight[18,6] out_proj.*[6,6]");
  expect_tensors<PyTorchModule<MultiHeadAttention<kCross>>>(
      "k_proj_weight[6,4] out_proj.weight[6,6] q_proj_weight[6,6] v_proj_weight[6,6]");
}

TEST(PyTorchLayers, of_attention_with_grouped_heads_are_four_linear_layers) {
  expect_tensors<
      PyTorchModule<MultiHeadAttention<AttentionShape{.seq_len = 2,
                                                      .d_model = 6,
                                                      .num_heads = 2,
                                                      .num_kv_heads = 1,
                                                      .bias = false,
                                                      .query_key_norm = QueryKeyNorm::kLayerNorm}>>>(
      "k_norm.weight[3] k_proj.weight[3,6] out_proj.weight[6,6] q_norm.weight[3] q_proj.weight[6,6] "
      "v_proj.weight[3,6]");
}

TEST(PyTorchLayers, of_attention_with_a_trained_factor_name_it_temperature) {
  constexpr AttentionShape kShape{.seq_len = 2,
                                  .d_model = 6,
                                  .num_heads = 2,
                                  .bias = false,
                                  .query_key_norm = QueryKeyNorm::kUnitLength,
                                  .score_scale = ScoreScale::kExponential};
  expect_tensors<PyTorchModule<MultiHeadAttention<kShape>>>(
      "k_proj.weight[6,6] out_proj.weight[6,6] q_proj.weight[6,6] temperature[2] v_proj.weight[6,6]");
}

TEST(PyTorchLayers, of_attention_with_biases_by_relative_position_have_a_table_of_heads) {
  constexpr AttentionShape kShape{
      .seq_len = 6,
      .d_model = 6,
      .num_heads = 2,
      .relative_bias = {.kind = attune::RelativePositions::kGrid, .rows = 2, .cols = 3}};
  expect_tensors<PyTorchModule<MultiHeadAttention<kShape>>>(
      "k_proj.*[6,6] out_proj.*[6,6] q_proj.*[6,6] relative_bias[2,15] v_proj.*[6,6]");
}

TEST(PyTorchLayers, attention_without_output_bias_becomes_four_linear_layers) {
  constexpr AttentionShape kShape{.seq_len = 2, .d_model = 6, .num_heads = 2, .output_bias = false};
  expect_tensors<PyTorchModule<MultiHeadAttention<kShape>>>(
      "k_proj.*[6,6] out_proj.weight[6,6] q_proj.*[6,6] v_proj.*[6,6]");
}

TEST(PyTorchLayers, of_a_network_that_is_an_nn_sequential) {
  static constexpr EncoderLayerNames kNames{.linear1 = "0", .linear2 = "2"};
  using Network = FeedForward<FeedForwardShape{.rows = 5, .d_model = 6, .d_ff = 7}>;
  expect_tensors<HuggingFaceModule<kNames, Sequential<Network>, "mlp">>("mlp.0.*[7,6] mlp.2.*[6,7]");
}

TEST(PyTorchLayers, of_transformer_layers) {
  expect_tensors<PyTorchModule<EncoderLayer<kEncoder>>>(
      "linear1.*[7,6] linear2.*[6,7] norm1.*[6] norm2.*[6] self_attn.in_proj_bias[18] "
      "self_attn.in_proj_weight[18,6] self_attn.out_proj.*[6,6]");
  expect_tensors<PyTorchModule<DecoderLayer<kDecoder>>>(
      "linear1.*[7,6] linear2.*[6,7] multihead_attn.in_proj_bias[18] "
      "multihead_attn.in_proj_weight[18,6] multihead_attn.out_proj.*[6,6] norm1.*[6] norm2.*[6] "
      "norm3.*[6] self_attn.in_proj_bias[18] self_attn.in_proj_weight[18,6] "
      "self_attn.out_proj.*[6,6]");
}

TEST(PyTorchLayers, of_a_decoder_layer_have_the_names_of_a_table_of_its_own) {
  static constexpr EncoderLayerNames kMemory{
      .query = "cross.q", .key = "cross.k", .value = "cross.v", .output = "cross.o"};
  static constexpr EncoderLayerNames kOfDecoder{.query = "own.q",
                                                .key = "own.k",
                                                .value = "own.v",
                                                .output = "own.o",
                                                .linear1 = "wide",
                                                .linear2 = "narrow",
                                                .norm1 = "a",
                                                .norm2 = "b",
                                                .norm3 = "c",
                                                .memory = &kMemory};
  static constexpr EncoderLayerNames kNames{.query = "q",
                                            .key = "k",
                                            .value = "v",
                                            .output = "o",
                                            .linear1 = "1",
                                            .linear2 = "2",
                                            .norm1 = "3",
                                            .norm2 = "4",
                                            .decoder = &kOfDecoder};
  constexpr const char* kTensors =
      "0.a.*[6] 0.b.*[6] 0.c.*[6] 0.cross.k.*[6,6] 0.cross.o.*[6,6] 0.cross.q.*[6,6] 0.cross.v.*[6,6] "
      "0.narrow.*[6,7] 0.own.k.*[6,6] 0.own.o.*[6,6] 0.own.q.*[6,6] 0.own.v.*[6,6] 0.wide.*[7,6]";
  using Layers = Sequential<DecoderLayer<kDecoder>>;
  expect_tensors<HuggingFaceModule<kNames, Layers>>(kTensors);
  expect_tensors<HuggingFaceModule<kOfDecoder, Layers>>(kTensors);
  expect_tensors<HuggingFaceModule<kNames, Sequential<EncoderLayer<kEncoder>>>>(
      "0.1.*[7,6] 0.2.*[6,7] 0.3.*[6] 0.4.*[6] 0.k.*[6,6] 0.o.*[6,6] 0.q.*[6,6] 0.v.*[6,6]");
}
