// expect: attune::EncoderLayer, DecoderLayer: the norm needs recompute(parameters, x, tape, y); a Residual
#include <attune/attune.hpp>

using Layer = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = 4, .d_model = 8, .d_ff = 8}>,
    attune::Residual<attune::RmsNorm<attune::NormShape{.rows = 4, .d_model = 8}>>>;
Layer::Tape tape;
