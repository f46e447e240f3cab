// expect: attune::MultiHeadAttention: num_heads must be positive; 1 is a single head
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8};
attune::MultiHeadAttention<kShape>::Parameters parameters;
