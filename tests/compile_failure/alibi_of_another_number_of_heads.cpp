// expect: attune::AlibiBias: the bias and the layer have different numbers of heads
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 4}>;

void infer(const Layer::Parameters& parameters, Layer::InferenceScratch& scratch) {
  Layer::Input x;
  Layer::Output y;
  attune::infer<Layer>(parameters, x, y, scratch, attune::AlibiBias<8>{});
}
