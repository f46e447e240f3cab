// expect: attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides d_model, or set d_k and d_v in AttentionShape
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 2, .num_heads = 4};
attune::MultiHeadAttention<kShape>::Parameters parameters;
