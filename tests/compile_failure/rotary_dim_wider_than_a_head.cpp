// expect: attune::MultiHeadAttention: rotary_dim must be even and at most d_k
#include <attune/attention/multi_head_attention.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .rotary_dim = 8};
attune::MultiHeadAttention<kShape>::Parameters parameters;
