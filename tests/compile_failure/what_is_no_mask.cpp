// expect: AttentionMask
// errors: 2  GCC names the overload of decoder layers, too
// kilobytes: 10  the way from the call to the layer
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y, Layer::InferenceScratch& scratch) {
  attune::infer<Layer>(parameters, x, y, scratch, 3);
}
