// expect: attune::MatrixView: the destination is a temporary; store it in a variable
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x, Cache& cache,
                   Cache::Scratch<>& scratch) {
  return Layer::step(parameters, x, attune::Tensor<float, 1, 8>{}, cache, scratch);
}
