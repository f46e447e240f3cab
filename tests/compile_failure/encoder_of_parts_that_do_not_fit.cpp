// expect: attune: the output of a layer does not fit the input of the next
// errors: 2  the network fits neither what is before nor what is behind it
// kilobytes: 15  the way from the call to the layer
#include <attune/attune.hpp>

using Layer = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = 4, .d_model = 6, .d_ff = 8}>,
    attune::RmsNorm<attune::NormShape{.rows = 4, .d_model = 8}>>;
Layer::Tape tape;
