// A model of the test: in flash, and drawn.
#pragma once

#include <attune/attune.hpp>

namespace small {

inline constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 16};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 3, .d_out = 8}>,
                                 attune::EncoderLayer<kBlock>,
                                 attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>,
                                 attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>>;
using Names = attune::PyTorchModule<Model, "embed", "block", "head">;

using Text = attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                                attune::EncoderLayer<attune::EncoderLayerShape{
                                    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2, .window = {.right = 0}},
                                    .d_ff = 16}>,
                                attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 9}>>;

}  // namespace small
