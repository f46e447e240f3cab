// expect: attune: a stream has no last token to append keys to; leave out add_bias_kv and add_zero_attn
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .add_zero_attn = true}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;
