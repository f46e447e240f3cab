// expect: attune::LowRank: the rank must be positive
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
constexpr Layer::Parameters kLayer{};
attune::Adapted<Layer, kLayer, attune::LowRank{.rank = 0, .alpha = 1}>::Parameters parameters;
