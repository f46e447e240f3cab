// expect: attune::MultiHeadAttention: softcap must be in [1e-30, 1e30], or 0 for no cap
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .softcap = 1e40};  // infinity in float
attune::MultiHeadAttention<kShape>::Parameters parameters;
