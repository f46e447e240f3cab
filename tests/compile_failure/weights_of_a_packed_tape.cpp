// expect: attune::MultiHeadAttention: the weights of a packed tape cannot be read; leave out PackedTape
#include <attune/attune.hpp>

using Layer = attune::PackedTape<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>>;

void use(const Layer::Tape& tape, Layer::Weights& mean) { tape.average_weights(mean); }
