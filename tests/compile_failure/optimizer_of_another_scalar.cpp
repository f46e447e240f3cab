// expect: attune::Trainer: model and optimizer have different scalars; give both the same (Adam<{}, double>)
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

attune::Trainer<Layer, attune::MeanSquaredError, attune::Adam<attune::AdamVariant{}, double>> trainer;
