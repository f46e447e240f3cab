// expect: attune::KeyValueCache: an 8-bit cache needs a model in float; leave .numbers out of CacheShape
#include <attune/attune.hpp>

using Layer =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}, double>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .numbers = attune::CacheNumbers::kInt8}> cache;
