// The classifier of spoken digits: a recording is a sequence of up to 32 tokens of 25 ms, a token 16 log-mel
// bands.
#pragma once

#include <attune/attune.hpp>

#include "recording.hpp"

namespace personalise {

inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr int kBlocks = 2;
inline constexpr attune::EncoderLayerShape kEncoder{.seq_len = kTokens,
                                                    .d_model = kWidth,
                                                    .num_heads = ATTUNE_EXAMPLE_NUM_HEADS,
                                                    .d_ff = 2 * kWidth,
                                                    .activation = attune::Activation::kGelu,
                                                    .norm = attune::NormPlacement::kBefore};
static_assert(ATTUNE_EXAMPLE_SEQ_LEN == kTokens, "personalise: a recording has up to 32 tokens");

/// From a recording to its features [1, kWidth].
using Front = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kBands, kWidth}>,
                                 attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>,
                                 attune::Repeat<kBlocks, attune::EncoderLayer<kEncoder>>,
                                 attune::LayerNorm<attune::NormShape{kTokens, kWidth}>,
                                 attune::Pooling<attune::PoolingShape{kTokens, kWidth}>>;
using Head = attune::Linear<attune::LinearShape{1, kWidth, kDigits}>;
/// What a PC trains: all of it.
using Base = attune::Sequential<Front, Head>;
using Logits = Base::Output;
using Features = Front::Output;
/// As an nn.Module has them.
using Names = attune::PyTorchModule<Base, "embed", "pos", "encoder.layers", "norm", "head">;

/// A recording as the model takes it.
struct Example {
  Front::Input tokens;
  attune::KeyPaddingMask<kTokens> padding;
  std::array<int, 1> digit;
};

inline void load(const Recording& recording, Example& example) {
  for (int i = 0; i < kTokens * kBands; ++i) {
    example.tokens.values[i] = static_cast<float>(recording.bands[i]) * kScale;
  }
  (void)example.padding.set_length(recording.length);  // from 1 to kTokens, as who wrote it has checked
  example.digit[0] = recording.digit;
}

}  // namespace personalise
