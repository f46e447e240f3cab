// expect: attune::PackedTape: a tape in 8 or 16 bits is for models in float; double keeps its own
#include <attune/attune.hpp>

using Layer = attune::EncoderLayer<
    attune::EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}, double>;
static attune::PackedTape<Layer>::Tape tape;
