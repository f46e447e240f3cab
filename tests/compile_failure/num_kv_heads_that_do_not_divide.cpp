// expect: attune::MultiHeadAttention: num_kv_heads must divide num_heads: as many query heads share each head
// of keys and values
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 4, .num_kv_heads = 3};
attune::MultiHeadAttention<kShape>::Parameters parameters;
