// The classifier of spoken digits: a recording is a sequence of up to 32 tokens of 25 ms, a token 16 log-mel
// bands.
#pragma once

#include <attune/attune.hpp>

#include "recording.hpp"

namespace personalise {

inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr int kBlocks = 2;
/// Of a block; `keep_weights`: those of attention, from forward to backward.
constexpr attune::EncoderLayerShape encoder(bool keep_weights) {
  return {.attention = {.seq_len = kTokens,
                        .d_model = kWidth,
                        .num_heads = ATTUNE_EXAMPLE_NUM_HEADS,
                        .keep_weights = keep_weights},
          .d_ff = 2 * kWidth,
          .activation = attune::Activation::kGelu,
          .norm = attune::NormPlacement::kBefore};
}
static_assert(ATTUNE_EXAMPLE_SEQ_LEN == kTokens, "personalise: a recording has up to 32 tokens");

/// From a recording to its features [1, kWidth].
template <class Block>
using FrontOf =
    attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kBands, kWidth}>,
                       attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>,
                       attune::Repeat<kBlocks, Block>, attune::LayerNorm<attune::NormShape{kTokens, kWidth}>,
                       attune::Pooling<attune::PoolingShape{kTokens, kWidth}>>;
using Head = attune::Linear<attune::LinearShape{1, kWidth, kDigits}>;

/// A device has time, not RAM: a block's inside is computed once more in backward.
using Front = FrontOf<attune::Checkpointed<attune::EncoderLayer<encoder(false)>>>;
using Whole = attune::Sequential<Front, Head>;
/// Less time, more RAM: the same with a tape in 8 bits.
using PackedFront = attune::QuantizedTape<FrontOf<attune::EncoderLayer<encoder(false)>>>;
/// What a PC trains: the same, of the same bits.
using Base = attune::Sequential<FrontOf<attune::EncoderLayer<encoder(true)>>, Head>;
/// Sums over a device's features, and over the factory's, which are in flash.
using HeadInClosedForm = attune::ClosedFormHead<kWidth, kDigits>;
/// The same without labels, from a device's takes.
using HeadWithoutLabels = attune::UnlabeledHead<kWidth, kDigits, kNumTakes>;
using Logits = Whole::Output;
using Features = Front::Output;
/// As an nn.Module has them.
using Names = attune::PyTorchModule<Whole, "embed", "pos", "encoder.layers", "norm", "head">;

/// A recording as the model takes it.
struct Example {
  Front::Input tokens;
  attune::KeyPaddingMask<kTokens> padding;
  std::array<int, 1> digit;
};

/// Features in 8 bits, and the digit where it is known.
struct PackedFeatures {
  attune::Int8 values[kWidth];
  float scale;
  int digit;

  void pack(const Features& features) { scale = attune::kernels::pack_row(kWidth, features.data(), values); }
  void unpack(Features& features) const {
    attune::kernels::unpack_row(kWidth, values, scale, features.data());
  }
};

inline void load(const Recording& recording, Example& example) {
  for (int i = 0; i < kTokens * kBands; ++i) {
    example.tokens.values[i] = static_cast<float>(recording.bands[i]) * kScale;
  }
  (void)example.padding.set_length(recording.length);  // from 1 to kTokens, as who wrote it has checked
  example.digit[0] = recording.digit;
}

}  // namespace personalise
