// expect: attune::EncoderDecoder: no layer of the decoder attends to the encoder's output
#include "encoder_decoder.hpp"

using Model = attune::EncoderDecoder<Encoder, Encoder>;
static_assert(sizeof(Model::Parameters) > 0);
