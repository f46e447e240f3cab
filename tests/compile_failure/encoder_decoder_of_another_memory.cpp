// expect: attune::EncoderDecoder: the encoder's output is not the memory of a decoder layer
#include "encoder_decoder.hpp"

constexpr attune::EncoderLayerShape kLonger{.attention = {.seq_len = 7, .d_model = 4, .num_heads = 2}, .d_ff = 6};
using Model = attune::EncoderDecoder<attune::EncoderLayer<kLonger>, Decoder>;
static attune::Trainer<Model> trainer;
void train(const Model::Input& x, const Model::Output& y) { (void)trainer.accumulate(x, y); }
