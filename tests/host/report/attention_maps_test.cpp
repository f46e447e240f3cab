#include <attune/host/report/attention_maps.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using attune::host::attention_maps;
using attune::host::AttentionMap;

template <class Tape>
Tape filled(std::uint64_t seed) {
  Tape tape{};
  attune::Rng rng(seed);
  check::fill(tape.weights, rng);
  return tape;
}

template <class Tape>
void expect_head(const AttentionMap& map, const std::string& layer, int head, const Tape& tape) {
  EXPECT_EQ(map.layer, layer);
  EXPECT_EQ(map.head, head);
  const auto weights = tape.head_weights(head);
  ASSERT_EQ(map.queries, weights.rows);
  ASSERT_EQ(map.keys, weights.cols);
  for (int i = 0; i < weights.rows; ++i) {
    for (int j = 0; j < weights.cols; ++j) {
      EXPECT_EQ(map.weights[static_cast<std::size_t>(i * weights.cols + j)],
                static_cast<double>(weights(i, j)));
    }
  }
}

}  // namespace

TEST(AttentionMaps, of_an_attention_layer_are_its_heads) {
  using Layer = attune::MultiHeadAttention<attune::AttentionShape{
      .seq_len = 3, .d_model = 4, .num_heads = 2, .kv_len = 5}>;
  const auto tape = filled<Layer::Tape>(1);
  const auto maps = attention_maps(tape);
  ASSERT_EQ(maps.size(), 2u);
  expect_head(maps[0], "", 0, tape);
  expect_head(maps[1], "", 1, tape);
}

TEST(AttentionMaps, list_layers_in_order) {
  using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 8}>;
  using Tokens = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 4}>;
  using Model = attune::Sequential<Tokens, attune::Repeat<2, Encoder>, attune::Repeat<1, Encoder>,
                                   attune::Pooling<attune::PoolingShape{3, 4}>>;
  static Model::Tape tape{};
  auto& blocks = attune::detail::member<1>(tape.layers);
  auto& single = attune::detail::member<2>(tape.layers);
  blocks.layers[0].self_attention = filled<Encoder::SelfAttention::Tape>(1);
  blocks.layers[1].self_attention = filled<Encoder::SelfAttention::Tape>(2);
  single.layers[0].self_attention = filled<Encoder::SelfAttention::Tape>(3);
  const auto maps = attention_maps(tape);
  ASSERT_EQ(maps.size(), 6u);
  expect_head(maps[1], "layer 1, block 0", 1, blocks.layers[0].self_attention);
  expect_head(maps[2], "layer 1, block 1", 0, blocks.layers[1].self_attention);
  expect_head(maps[4], "layer 2", 0, single.layers[0].self_attention);
}

TEST(AttentionMaps, of_a_decoder_layer_are_two) {
  using Decoder = attune::DecoderLayer<attune::DecoderLayerShape{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 1}, .d_ff = 8, .memory_len = 5}>;
  static Decoder::Tape tape{};
  tape.cross_attention.weights(2, 4) = 0.5f;
  const auto maps = attention_maps(tape);
  ASSERT_EQ(maps.size(), 2u);
  expect_head(maps[0], "self-attention", 0, tape.self_attention);
  expect_head(maps[1], "cross-attention", 0, tape.cross_attention);
}

TEST(AttentionMaps, are_empty_without_kept_weights) {
  using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2, .keep_weights = false}, .d_ff = 8}>;
  static const Encoder::Tape tape{};  // a temporary makes clang 16 crash
  EXPECT_TRUE(attention_maps(tape).empty());
}

TEST(AttentionMaps, are_empty_without_attention) {
  using Model = attune::Sequential<attune::Linear<attune::LinearShape{3, 2, 4}>>;
  EXPECT_TRUE(attention_maps(Model::Tape{}).empty());
}
