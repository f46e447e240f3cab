// expect: attune::IsLayer: there is no forward(parameters, x, y, tape, scratch[, mask])
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

attune::Trainer<attune::DecoderLayer<attune::DecoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>>
    trainer;
