// expect: attune::MultiHeadAttention: d_model, d_key, d_value and d_out must be positive
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Parameters parameters;
