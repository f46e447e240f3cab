// expect: attune::KeyValueCache: sinks are the first tokens that a window keeps; set .window with them
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .sinks = 2}> cache;
