// expect: attune: this is a trainer, not parameters; pass trainer.parameters()
// errors: 3  the weight, and with GCC the bias, that a trainer does not have
// kilobytes: 13  the way from the call to the layer
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
using Cache = attune::KeyValueCache<Model, attune::CacheShape{.capacity = 4}>;
attune::Status f(const attune::Trainer<Model>& trainer, const Model::Input& x, Model::Output& y, Cache& cache,
                 Cache::Scratch<>& scratch) {
  return attune::step<attune::Trainer<Model>, Model, Cache::kShape, 1>(trainer, x, y, cache, scratch);
}
