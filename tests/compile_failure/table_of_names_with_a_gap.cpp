// expect: attune::EncoderLayerNames: the table lacks a name for a part of the layer: gate, query_norm
// kilobytes: 18  the way from the call to the layer
#include <attune/attune.hpp>

constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2},
                                           .d_ff = 8};
using Block = attune::EncoderLayer<kBlock>;
constexpr attune::EncoderLayerNames kNames{.query = "q", .key = "k", .value = "v"};
attune::Status f(const Block::Parameters& parameters) {
  return attune::write_safetensors<attune::HuggingFaceModule<kNames, Block, "block">>(
      parameters, [](const char*, std::size_t) {});
}
