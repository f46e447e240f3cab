// expect: nodiscard
#include <attune/attune.hpp>

#pragma GCC diagnostic error "-Wunused-result"
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

void use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
         attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch) {
  Layer::step(parameters, x, y, cache, scratch);
}
