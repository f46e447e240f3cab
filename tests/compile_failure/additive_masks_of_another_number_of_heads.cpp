// expect: attune::additive_mask_per_head: the mask and the layer have different numbers of heads
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y, Layer::InferenceScratch& scratch) {
  attune::Tensor<float, 2 * 4, 4> biases{};
  attune::infer<Layer>(parameters, x, y, scratch, attune::additive_mask_per_head<2>(biases));
}
