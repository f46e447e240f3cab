// Shapes of attention that several tests go through.
#pragma once

#include <attune/attention/attention_shape.hpp>

namespace check {

/// Every size another one, so that none can stand in for another.
inline constexpr attune::AttentionShape kAllSizesDiffer{.seq_len = 3,
                                                        .d_model = 4,
                                                        .num_heads = 2,
                                                        .kv_len = 5,
                                                        .d_k = 6,
                                                        .d_v = 7,
                                                        .d_key = 8,
                                                        .d_value = 9,
                                                        .d_out = 10};

/// Options of attention that layers of an encoder and a decoder pass on.
inline constexpr attune::AttentionShape kPassedOn{.seq_len = 4,
                                                  .d_model = 8,
                                                  .num_heads = 4,
                                                  .num_kv_heads = 2,
                                                  .rotary_dim = 2,
                                                  .rotary_base = 500,
                                                  .window = {.left = 2, .sinks = 1},
                                                  .alibi = true,
                                                  .relative_bias = {attune::RelativePositions::kDistance, 2},
                                                  .softcap = 30,
                                                  .query_key_norm = attune::QueryKeyNorm::kLayerNorm,
                                                  .query_key_epsilon = 1e-6,
                                                  .score_scale = attune::ScoreScale::kFactor,
                                                  .score_scales = 1};

/// A shape after a change.
constexpr attune::AttentionShape changed(attune::AttentionShape shape, const auto& change) {
  change(shape);
  return shape;
}

/// The same shape with a window, biases, softcap, a trained factor and two more keys.
constexpr attune::AttentionShape with_every_option(attune::AttentionShape shape,
                                                   attune::AttentionWindow window) {
  shape.window = window;
  shape.alibi = true;
  shape.relative_bias = {.kind = attune::RelativePositions::kDistance, .max_distance = 2};
  shape.softcap = 2;
  shape.score_scale = attune::ScoreScale::kExponential;
  shape.add_bias_kv = true;
  shape.add_zero_attn = true;
  return shape;
}

}  // namespace check
