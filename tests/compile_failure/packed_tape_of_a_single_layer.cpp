// expect: attune::PackedTape: packing the tape of a single layer saves nothing; use PackedTape on the whole
// expect: attune::PackedTape: packing the tape of a single layer saves nothing; use PackedTape on the whole
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
static attune::Trainer<attune::PackedTape<Layer>> trainer;
