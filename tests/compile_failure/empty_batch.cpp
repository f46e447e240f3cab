// expect: attune::Trainer: batch must be at least 1
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 0> trainer;
