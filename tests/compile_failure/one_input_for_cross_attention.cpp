// expect: attune::MultiHeadAttention: self-attention needs kv_len, d_key and d_value equal to seq_len and d_model; pass query, key and value
// errors: 2  the one input has the shape of no key, either
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .kv_len = 5};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch);
}
