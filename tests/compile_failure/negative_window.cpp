// expect: attune::MultiHeadAttention: left, right and sinks of a window must not be negative; use kUnlimited
// they are kUnlimited
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .window = {.left = -1, .right = 0}};
attune::MultiHeadAttention<kShape>::Parameters parameters;
