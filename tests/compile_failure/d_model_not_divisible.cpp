// expect: attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides d_model, or set d_k and d_v in AttentionShape
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 3};
attune::MultiHeadAttention<kShape>::Parameters parameters;
