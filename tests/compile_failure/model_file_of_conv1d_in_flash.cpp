// expect: attune::kInFlash, refer_to_safetensors: Conv1D weights are [in, out] in the file, packed by
#include <attune/attune.hpp>

constexpr attune::EncoderLayerShape kShape{.attention = {.seq_len = 1, .d_model = 1, .num_heads = 1},
                                           .d_ff = 1};
using Block = attune::EncoderLayer<kShape>;
auto refer(std::string_view file,
           Block::ParametersOf<attune::TransposedReference, attune::Reference>& in_place) {
  return attune::refer_to_safetensors<attune::HuggingFaceModule<attune::kGpt2Layer, Block>>(file, in_place);
}
