// expect: attune::Lockstep: sequences in lockstep would share the masks of dropout; set dropout to 0
#include <attune/attune.hpp>

constexpr attune::EncoderLayerShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .d_ff = 8, .dropout = 0.1};
attune::Trainer<attune::EncoderLayer<kShape>, attune::MeanSquaredError, attune::AdamW, 64, attune::Lockstep> trainer;
