// expect: attune::DecoderLayer: the layer has no memory; put it into the Decoder of EncoderDecoder<Encoder
// kilobytes: 37  the way from the call to the layer
#include "encoder_decoder.hpp"

template void run<attune::Sequential<attune::Linear<attune::LinearShape{3, 4, 4}>, Decoder>>();
