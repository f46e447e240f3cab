// expect: attune::DecoderLayer: nothing gives the layer its memory
// kilobytes: 25  the way from the call to the layer
#include "encoder_decoder.hpp"

using Layer = attune::DecoderLayer<kDecoder>;
static attune::Trainer<Layer> trainer;
void train(const Layer::Input& x) { (void)trainer.accumulate(x, x); }
