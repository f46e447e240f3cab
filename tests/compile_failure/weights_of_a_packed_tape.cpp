// expect: attune::MultiHeadAttention: the weights of a packed tape cannot be read; leave out PackedTape
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Model = attune::PackedTape<attune::Repeat<2, Layer>>;

void use(const Model::Tape& tape, Layer::Weights& mean) { tape.layers[0].average_weights(mean); }
