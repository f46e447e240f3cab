// A language model of 260 thousand parameters, of the shape of those that tell children's stories: Llama's
// blocks, the head tied to the embedding.
#pragma once

#include <attune/attune.hpp>

namespace bench {

inline constexpr int kLength = 512, kVocabulary = 512, kWidth = 64, kLayers = 5;
inline constexpr int kHeads = 8, kKvHeads = 4, kHeadWidth = kWidth / kHeads, kHidden = 172;

inline constexpr attune::NormShape kNorm{.rows = kLength, .d_model = kWidth};
using Block = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = kLength,
                                                      .d_model = kWidth,
                                                      .num_heads = kHeads,
                                                      .num_kv_heads = kKvHeads,
                                                      .bias = false,
                                                      .rotary_dim = kHeadWidth,
                                                      .rotary_pairs = attune::RotaryPairs::kInterleaved}>,
    attune::SwiGlu<attune::FeedForwardShape{
        .rows = kLength, .d_model = kWidth, .d_ff = kHidden, .bias = false}>,
    attune::RmsNorm<kNorm>, attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
using Stories = attune::Tied<attune::Embedding<attune::EmbeddingShape{kLength, kVocabulary, kWidth}>,
                             attune::Sequential<attune::Repeat<kLayers, Block>, attune::RmsNorm<kNorm>>>;
using StoriesCache = attune::KeyValueCache<Stories, attune::CacheShape{.capacity = kLength}>;

/// Multiply-accumulates of one token, those of attention included.
constexpr int token_macs(int position) {
  constexpr int kProjections = 2 * kWidth * kWidth + 2 * kWidth * kKvHeads * kHeadWidth;
  constexpr int kFeedForward = 3 * kWidth * kHidden;
  return kLayers * (kProjections + kFeedForward + 2 * (position + 1) * kWidth) + kVocabulary * kWidth;
}

inline constexpr int kPositions[] = {127, 511};

}  // namespace bench
