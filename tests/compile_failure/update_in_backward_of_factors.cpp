// expect: attune::UpdateInBackward: backward of one of the layers may read parameters behind their
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
constexpr Layer::Parameters kLayer{};
using Model = attune::Adapted<Layer, kLayer, attune::LowRank{.rank = 2}>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
