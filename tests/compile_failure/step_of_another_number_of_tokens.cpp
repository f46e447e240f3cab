// expect: attune::Ids: this is another number of ids; there is one for each token or row
#include <attune/attune.hpp>

using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 8, .d_model = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, attune::Tensor<float, 3, 2>& y, Cache& cache,
                   Cache::Scratch<3>& scratch) {
  return attune::step(parameters, {{1, 2, 3, 4}}, y, cache, scratch);
}
