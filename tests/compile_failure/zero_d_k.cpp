// expect: attune::MultiHeadAttention: d_k and d_v must be positive; with more heads than d_model, set them in AttentionShape
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .d_k = 0};
attune::MultiHeadAttention<kShape>::Parameters parameters;
