// expect: attune::KeyValueCache: set either a capacity or a window in CacheShape, to a positive number of
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .window = 4}> cache;
