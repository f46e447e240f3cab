#pragma GCC diagnostic error "-Wdeprecated-declarations"
#define EPSILON 1e-5
#include <attune/attune.hpp>

using Model = attune::RmsNorm<attune::NormShape{.rows = 2, .d_model = 4, .epsilon = EPSILON}>;
constexpr attune::EncoderLayerNames kLlama3 = [] {
  auto names = attune::kLlamaLayer;
  names.epsilon = EPSILON;
  return names;
}();
using Names = attune::HuggingFaceModule<kLlama3, attune::Sequential<Model>, "model.norm">;
attune::Status send(const attune::Sequential<Model>::Parameters& parameters) {
  return attune::write_safetensors<Names>(parameters, [](const char*, std::size_t) {});
}
