// expect: attune::EncoderDecoder: source and target are both token ids, or matrices of as many columns
#include "encoder_decoder.hpp"

using Ids = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 9, .d_model = 4}>;
using Model = attune::EncoderDecoder<Encoder, attune::Sequential<Ids, Decoder>>;
static_assert(sizeof(Model::Parameters) > 0);
