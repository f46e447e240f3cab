// expect: attune::Trainer: UpdateInBackward has no gradients to clip; pass NoClipping{}
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
Layer::Input x;
Layer::Output target;

int main() { return trainer.step(x, target, {}, attune::GradientClipping{1.0f}).ok(); }
