// expect: attune::AdditiveMask: the mask and the layer have different kv_len
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::Tensor<float, 4, 5> bias{};
  attune::infer<Layer>(parameters, x, y, scratch, attune::AdditiveMask(bias));
}
