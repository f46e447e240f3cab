// expect: attune::AlibiBias: made for another number of heads than the layer's
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 4}>;

void infer(const Layer::Parameters& parameters, Layer::InferenceScratch& scratch) {
  Layer::Input x;
  Layer::Output y;
  attune::infer<Layer>(parameters, x, y, scratch, attune::AlibiBias<8>{});
}
