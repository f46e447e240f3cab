// The parts of an EncoderDecoder, for cases about it.
#pragma once

#include <attune/attune.hpp>

constexpr attune::EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 4, .num_heads = 2}, .d_ff = 6};
constexpr attune::DecoderLayerShape kDecoder{
    .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 6, .memory_len = 5};
using Encoder = attune::EncoderLayer<kEncoder>;
using Decoder = attune::Sequential<attune::DecoderLayer<kDecoder>, attune::Linear<attune::LinearShape{3, 4, 4}>>;
template <class Model>
void run() {
  static typename Model::Parameters parameters;
  static typename Model::Input x;
  static typename Model::Output y;
  static typename Model::InferenceScratch scratch;
  Model::forward(parameters, x, y, scratch);
}
