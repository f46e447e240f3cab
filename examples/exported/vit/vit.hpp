// Vit of PyTorch, as a type of attune. Its weights are model.safetensors, under the same names.
// A row of the input is a patch, in the order [channels, height, width].
#pragma once

#include <attune/attune.hpp>

namespace vit {

inline constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 17, .d_model = 24,
    .num_heads = 3}, .d_ff = 48, .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};

using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{.rows = 16, .d_in = 4, .d_out = 24}>,
    attune::ClassToken<attune::TokenShape{.seq_len = 16, .d_model = 24}>,
    attune::LearnedPositions<attune::PositionShape{.seq_len = 17, .d_model = 24}>,
    attune::Repeat<2, attune::EncoderLayer<kBlock>>,
    attune::LayerNorm<attune::NormShape{.rows = 17, .d_model = 24}>,
    attune::Pooling<attune::PoolingShape{.seq_len = 17, .d_model = 24, .kind = attune::PoolingKind::kFirst}>,
    attune::Linear<attune::LinearShape{.rows = 1, .d_in = 24, .d_out = 10}>>;

inline constexpr attune::EncoderLayerNames kBlockNames{
    .output = "proj",
    .linear1 = "mlp.0",
    .linear2 = "mlp.2",
    .norm1 = "norm1",
    .norm2 = "norm2",
    .qkv_weight = "qkv.weight",
    .qkv_bias = "qkv.bias"};
using Names = attune::PyTorchFile<attune::HuggingFaceModule<kBlockNames, Model, "patches", "cls_token",
    "pos_embed", "blocks", "norm", "head">, attune::TensorShape<"patches.weight", 24, 1, 2, 2>,
    attune::TensorShape<"cls_token", 1, 1, 24>, attune::TensorShape<"pos_embed", 1, 17, 24>>;

}  // namespace vit
