// expect: attune::AdditiveMask: the mask's seq_len differs from the layer's, or from the cache's capacity in
// kilobytes: 39  the way from the call to the layer
#include <attune/attune.hpp>

constexpr attune::DecoderLayerShape kShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 5, .memory_len = 3};
using Layer = attune::DecoderLayer<kShape>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
                   attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch,
                   const attune::Tensor<float, 4, 3>& bias) {
  return Layer::step(parameters, x, y, cache, scratch, attune::AdditiveMask(bias));
}
