// expect: attune::MultiHeadAttention: num_kv_heads must divide num_heads; num_heads / num_kv_heads query
// of keys and values
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 4, .num_kv_heads = 3};
attune::MultiHeadAttention<kShape>::Parameters parameters;
