// expect: attune::SequenceLength: the length and the layer have different seq_len
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(attune::Trainer<Layer, attune::MeanSquaredError>& trainer, const Layer::Input& x) {
  attune::SequenceLength<5> length;
  (void)trainer.accumulate(x, x, length);
}
