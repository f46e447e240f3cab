// expect: attune::MultiHeadAttention: attention weights are not kept; set .keep_weights = true in
// expect: set .keep_weights = true in AttentionShape
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .keep_weights = false};

float use(const attune::MultiHeadAttention<kShape>::Tape& tape) { return tape.head_weights(0)(0, 0); }
