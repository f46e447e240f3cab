// expect: attune::EncoderLayer, DecoderLayer: seq_len, d_model, num_heads and d_ff must be positive; set
#include <attune/models/encoder_layer.hpp>

attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}}>::Input x;
