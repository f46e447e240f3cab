#include <attune/attention/attention_shape.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

using attune::AttentionShape;

constexpr AttentionShape kPlain{.seq_len = 4, .d_model = 8, .num_heads = 4};

constexpr std::uint32_t fingerprint_with(const auto& change) {
  AttentionShape shape = kPlain;
  change(shape);
  return attune::detail::fingerprint_of(shape);
}

}  // namespace

TEST(AttentionShape, query_heads_share_key_heads_in_their_order) {
  constexpr AttentionShape kGrouped{.seq_len = 4, .d_model = 8, .num_heads = 4, .num_kv_heads = 2};
  static_assert(kPlain.num_kv_heads == 4 && kPlain.kv_head_of(3) == 3);
  EXPECT_EQ(kGrouped.kv_head_of(1), 0);
  EXPECT_EQ(kGrouped.kv_head_of(2), 1);
  EXPECT_EQ(kGrouped.d_k, 2);
}

TEST(AttentionShape, counts_appended_keys) {
  EXPECT_EQ(kPlain.num_keys(), 4);
  constexpr AttentionShape kBoth{
      .seq_len = 3, .d_model = 8, .num_heads = 2, .kv_len = 6, .add_bias_kv = true, .add_zero_attn = true};
  EXPECT_EQ(kBoth.num_keys(), 8);
}

// A stored training of a shape that says nothing of newer options is still one of that shape.
TEST(AttentionShape, options_at_their_defaults_are_not_in_the_fingerprint) {
  EXPECT_EQ(attune::detail::fingerprint_of(kPlain),
            attune::fingerprint(4, 4, attune::Scaling::kInverseSqrtDk, 0, attune::RotaryPairs::kHalves,
                                10'000.0, 0.0));
}

TEST(AttentionShape, every_option_changes_the_fingerprint) {
  const std::uint32_t of[] = {
      attune::detail::fingerprint_of(kPlain),
      fingerprint_with([](auto& shape) { shape.num_kv_heads = 2; }),
      fingerprint_with([](auto& shape) { shape.window.left = 2; }),
      fingerprint_with([](auto& shape) { shape.window.right = 2; }),
      fingerprint_with([](auto& shape) { shape.window = {.left = 2, .sinks = 1}; }),
      fingerprint_with([](auto& shape) { shape.window.own_key = attune::OwnKey::kHidden; }),
      fingerprint_with([](auto& shape) { shape.scaling = attune::Scaling::kOne; }),
      fingerprint_with([](auto& shape) { shape.score_scale = attune::ScoreScale::kFactor; }),
      fingerprint_with([](auto& shape) { shape.score_scale = attune::ScoreScale::kExponential; }),
      fingerprint_with([](auto& shape) {
        shape.score_scale = attune::ScoreScale::kExponential;
        shape.score_scales = 1;
      }),
      fingerprint_with([](auto& shape) { shape.query_key_norm = attune::QueryKeyNorm::kUnitLength; }),
      fingerprint_with([](auto& shape) { shape.alibi = true; }),
      fingerprint_with([](auto& shape) { shape.relative_bias.kind = attune::RelativePositions::kBuckets; }),
      fingerprint_with(
          [](auto& shape) { shape.relative_bias.kind = attune::RelativePositions::kCausalBuckets; }),
      fingerprint_with([](auto& shape) {
        shape.relative_bias = {.kind = attune::RelativePositions::kBuckets, .buckets = 16};
      }),
      fingerprint_with([](auto& shape) {
        shape.relative_bias = {.kind = attune::RelativePositions::kGrid, .rows = 2, .cols = 2};
      }),
      fingerprint_with([](auto& shape) { shape.softcap = 30; }),
      fingerprint_with([](auto& shape) { shape.softcap = 50; }),
      fingerprint_with([](auto& shape) { shape.query_key_norm = attune::QueryKeyNorm::kLayerNorm; }),
      fingerprint_with([](auto& shape) { shape.query_key_norm = attune::QueryKeyNorm::kRootMeanSquare; }),
      fingerprint_with([](auto& shape) { shape.add_bias_kv = true; }),
      fingerprint_with([](auto& shape) { shape.add_zero_attn = true; }),
      fingerprint_with([](auto& shape) { shape.offset = 1; }),
  };
  for (const std::uint32_t& a : of) {
    for (const std::uint32_t& b : of) EXPECT_EQ(a == b, &a == &b);
  }
}

TEST(AttentionShape, unused_options_take_no_memory) {
  using Layer = attune::MultiHeadAttention<kPlain>;
  static_assert(sizeof(Layer::Parameters) == sizeof(float) * 4 * (8 * 8 + 8));
  static_assert(sizeof(Layer::Tape) == sizeof(float) * (4 * 4 * 8 + 4 * 4 * 4));
  constexpr AttentionShape kMultiQuery{.seq_len = 4, .d_model = 8, .num_heads = 4, .num_kv_heads = 1};
  using MultiQuery = attune::MultiHeadAttention<kMultiQuery>;
  EXPECT_EQ(sizeof(MultiQuery::Tape), sizeof(float) * (2 * 4 * 8 + 2 * 4 * 2 + 4 * 4 * 4));
}

TEST(AttentionShape, biases_of_keys_count_where_not_all_scores_of_a_query_have_the_same) {
  EXPECT_FALSE(kPlain.key_bias_counts());
  const auto counts = [](const auto& change) {
    AttentionShape shape = kPlain;
    change(shape);
    return shape.key_bias_counts();
  };
  EXPECT_FALSE(counts([](auto& shape) { shape.alibi = true; }));
  EXPECT_FALSE(counts([](auto& shape) { shape.window.right = 0; }));
  EXPECT_TRUE(counts([](auto& shape) { shape.rotary_dim = 2; }));
  EXPECT_TRUE(counts([](auto& shape) { shape.softcap = 1; }));
  EXPECT_TRUE(counts([](auto& shape) { shape.query_key_norm = attune::QueryKeyNorm::kLayerNorm; }));
  EXPECT_TRUE(counts([](auto& shape) { shape.add_zero_attn = true; }));
}
