// The language model: what comes next, of kVocabulary tokens, behind each of up to kTokens. A block is that
// of Llama (Touvron et al., 2023): RMSNorm before, grouped heads, rotary positions, SwiGLU, no biases.
#pragma once

#include <attune/attune.hpp>

namespace stream {

inline constexpr int kTokens = ATTUNE_EXAMPLE_SEQ_LEN;
inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr int kHeads = ATTUNE_EXAMPLE_NUM_HEADS;
inline constexpr int kVocabulary = 512;
inline constexpr int kBlocks = 3;
inline constexpr int kHidden =
    kWidth * 8 / 3 / 4 * 4;  // of SwiGLU: with three matrices as large as 4·kWidth with two

inline constexpr attune::NormShape kNorm{.rows = kTokens, .d_model = kWidth};
inline constexpr attune::AttentionShape kAttention{.seq_len = kTokens,
                                                   .d_model = kWidth,
                                                   .num_heads = kHeads,
                                                   .num_kv_heads = kHeads / 2,
                                                   .bias = false,
                                                   .rotary_dim = kWidth / kHeads};
inline constexpr attune::FeedForwardShape kNetwork{
    .rows = kTokens, .d_model = kWidth, .d_ff = kHidden, .bias = false};

using Block = attune::EncoderLayerOf<attune::MultiHeadAttention<kAttention>, attune::SwiGlu<kNetwork>,
                                     attune::RmsNorm<kNorm>,
                                     attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
using Model = attune::Sequential<attune::Embedding<attune::EmbeddingShape{kTokens, kVocabulary, kWidth}>,
                                 attune::Repeat<kBlocks, Block>, attune::RmsNorm<kNorm>,
                                 attune::Linear<attune::LinearShape{
                                     .rows = kTokens, .d_in = kWidth, .d_out = kVocabulary, .bias = false}>>;
using Names = attune::PyTorchModule<Model, "embed", "blocks", "norm", "head">;
inline constexpr int kParameters = sizeof(Model::Parameters) / sizeof(float);

}  // namespace stream
