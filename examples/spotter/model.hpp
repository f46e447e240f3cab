// The spotter: for each token, does the last tone of the keyword sound? It looks back on a window of kWindow
// tokens, wherever in the stream it is: attention knows how far back a token is (ALiBi), not its position.
#pragma once

#include <attune/attune.hpp>

#include "signal.hpp"

namespace spotter {

inline constexpr int kTokens = ATTUNE_EXAMPLE_SEQ_LEN;  // of a window in training
inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr int kWindow = 32;  // that attention reaches back, the token itself included
inline constexpr int kBlocks = 2;

inline constexpr attune::NormShape kNorm{.rows = kTokens, .d_model = kWidth};
inline constexpr attune::AttentionShape kAttention{.seq_len = kTokens,
                                                   .d_model = kWidth,
                                                   .num_heads = ATTUNE_EXAMPLE_NUM_HEADS,
                                                   .window = {.left = kWindow - 1, .right = 0},
                                                   .alibi = true};
inline constexpr attune::FeedForwardShape kNetwork{
    .rows = kTokens, .d_model = kWidth, .d_ff = 2 * kWidth, .activation = attune::Activation::kGelu};
using Block = attune::EncoderLayerOf<attune::MultiHeadAttention<kAttention>, attune::FeedForward<kNetwork>,
                                     attune::LayerNorm<kNorm>,
                                     attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kBands, kWidth}>,
                                 attune::Repeat<kBlocks, Block>, attune::LayerNorm<kNorm>,
                                 attune::Linear<attune::LinearShape{kTokens, kWidth, 2}>>;
/// As an nn.Module has them.
using Names = attune::PyTorchModule<Model, "embed", "blocks", "norm", "head">;
inline constexpr int kParameters = sizeof(Model::Parameters) / sizeof(float);

}  // namespace spotter
