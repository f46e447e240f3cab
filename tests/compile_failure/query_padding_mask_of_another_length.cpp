// expect: attune::QueryPaddingMask: the mask's seq_len differs from the layer's, or from the cache's capacity
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::infer<Layer>(parameters, x, y, scratch, attune::CausalMask{} && attune::QueryPaddingMask<5>{});
}
