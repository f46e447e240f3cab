// expect: attune: cross-attention alone does not run token by token; use a DecoderLayer, which caches the
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .kv_len = 5}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;
