// expect: attune::PackedTape: an 8- or 16-bit tape needs a model in float
#include <attune/attune.hpp>

using Layer = attune::EncoderLayer<
    attune::EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}, double>;
static attune::PackedTape<Layer>::Tape tape;
