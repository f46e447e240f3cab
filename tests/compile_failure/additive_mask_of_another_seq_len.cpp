// expect: attune::AdditiveMask: the mask's seq_len differs from the layer's, or from the cache's capacity in
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y, Layer::Tape& tape,
         Layer::Scratch& scratch) {
  attune::Tensor<float, 3, 4> bias{};
  attune::forward<Layer>(parameters, x, y, tape, scratch, attune::AdditiveMask(bias));
}
