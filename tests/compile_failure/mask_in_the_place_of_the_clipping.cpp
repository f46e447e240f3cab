// expect: attune::Trainer: the fourth argument is not a clipping rule; call step(inputs, targets, options
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

int main() { return trainer.step(x, target, {}, attune::CausalMask{}).ok(); }
