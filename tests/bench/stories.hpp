// A language model of 260 thousand parameters, of the shape of those that tell children's stories: Llama's
// blocks, the head tied to the embedding.
#pragma once

#include "models.hpp"

namespace bench {

inline constexpr ModelShape kStories = shape_of("stories512");
inline constexpr int kLength = kStories.seq_len, kVocabulary = kStories.d_in, kWidth = kStories.d_model;
inline constexpr int kLayers = kStories.num_layers, kHidden = kStories.d_ff;
inline constexpr int kHeads = kStories.num_heads, kKvHeads = kStories.num_kv_heads,
                     kHeadWidth = kStories.d_head;
using Stories = Model<kStories>;
using StoriesCache = attune::KeyValueCache<Stories, attune::CacheShape{.capacity = kLength}>;

/// Multiply-accumulates of one token, those of attention included.
constexpr int token_macs(int position) {
  constexpr int kProjections = 2 * kWidth * kWidth + 2 * kWidth * kKvHeads * kHeadWidth;
  constexpr int kFeedForward = 3 * kWidth * kHidden;
  return kLayers * (kProjections + kFeedForward + 2 * (position + 1) * kWidth) + kVocabulary * kWidth;
}

inline constexpr int kPositions[] = {127, 511};

}  // namespace bench
