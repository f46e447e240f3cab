// expect: attune::DecoderLayer: the layer has no memory; put it into the Decoder of EncoderDecoder<Encoder
// kilobytes: 25  the way from the call to the layer
#include "encoder_decoder.hpp"

using Layer = attune::DecoderLayer<kDecoder>;
static attune::Trainer<Layer> trainer;
void train(const Layer::Input& x) { (void)trainer.accumulate(x, x); }
