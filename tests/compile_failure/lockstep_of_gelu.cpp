// expect: attune::Lockstep: one of the layers has functions without lanes: GELU
#include <attune/attune.hpp>

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .d_ff = 8, .activation = attune::Activation::kGelu}>;
attune::Trainer<Encoder, attune::MeanSquaredError, attune::AdamW, 64, attune::Lockstep> trainer;
