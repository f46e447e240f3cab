// expect: attune::EncoderDecoder: source and target must both be token ids, or matrices with the same number
#include "encoder_decoder.hpp"

using Ids = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 9, .d_model = 4}>;
using Model = attune::EncoderDecoder<Encoder, attune::Sequential<Ids, Decoder>>;
static_assert(sizeof(Model::Parameters) > 0);
