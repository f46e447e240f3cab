// expect: attune::EncoderLayerNames: attention_alone lacks a name
// kilobytes: 18  the way from the call to the layer
#include <attune/attune.hpp>

inline constexpr attune::EncoderLayerNames kAttention{.query = "q", .key = "k", .output = "out"};
inline constexpr attune::EncoderLayerNames kNames{.attention_alone = &kAttention};
using Model = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
static_assert(attune::SafetensorsLayout<attune::HuggingFaceModule<kNames, Model>>::kTensors == 8);
