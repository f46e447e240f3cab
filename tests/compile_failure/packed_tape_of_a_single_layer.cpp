// expect: attune::PackedTape: the tape of a single layer is in use all at once, so packing saves nothing
// expect: take PackedTape of the model, and .keep_weights = false in attention
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
static attune::Trainer<attune::PackedTape<Layer>> trainer;
