// expect: attune::KeyValueCache: sinks need a window; set .window as well
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .sinks = 2}> cache;
