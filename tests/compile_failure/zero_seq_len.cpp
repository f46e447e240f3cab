// expect: attune::MultiHeadAttention: seq_len and kv_len must be positive; set them in AttentionShape
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.d_model = 8, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Parameters parameters;
