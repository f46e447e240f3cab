// expect: attune::Trainer: pass one mask for the batch, or one for each sequence in a std::array or std::span
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;
std::array<attune::KeyPaddingMask<4>, 3> masks;

int main() { return trainer.step(x, target, {}, attune::NoClipping{}, masks).ok(); }
