// expect: attune::EncoderDecoder: a Frozen first decoder layer keeps no tape for the memory's gradient
// kilobytes: 10  the names of the layers
#include "encoder_decoder.hpp"

using Layer = attune::DecoderLayer<kDecoder>;
static Layer::Parameters constants;
using Model = attune::EncoderDecoder<
    Encoder, attune::Sequential<attune::Frozen<Layer, constants>, attune::Linear<attune::LinearShape{3, 4, 4}>>>;
static_assert(sizeof(Model::Parameters) > 0);
