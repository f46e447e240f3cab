// expect: attune: keys that add_bias_kv and add_zero_attn append stand behind the last token of a sequence
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .add_zero_attn = true}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;
