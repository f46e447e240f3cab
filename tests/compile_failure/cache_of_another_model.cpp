// expect: attune: the cache belongs to another model; use KeyValueCache<Model, shape>
#include <attune/attune.hpp>

constexpr attune::AttentionShape kOne{.seq_len = 4, .d_model = 8, .num_heads = 2};
constexpr attune::AttentionShape kOther{.seq_len = 4, .d_model = 8, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kOne>;
using Cache = attune::KeyValueCache<attune::MultiHeadAttention<kOther>, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
                   attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch) {
  return Layer::step(parameters, x, y, cache, scratch);
}
