// expect: attune::Trainer: UpdateInBackward keeps no gradients to add up; use a batch of 1
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4, attune::UpdateInBackward> trainer;
