// expect: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/attune.hpp>

using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 8, .d_model = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, attune::Tensor<float, 3, 2>& y, Cache& cache,
                   Cache::Scratch<3>& scratch) {
  return attune::step(parameters, {{1, 2, 3, 4}}, y, cache, scratch);
}
