// expect: attune: the norm's epsilon differs from the table's default; set config.json's value in the model
// kilobytes: 13  the way from the trainer to the names
#pragma GCC diagnostic error "-Wdeprecated-declarations"
#define EPSILON 1e-5
#include <attune/attune.hpp>

using Model = attune::RmsNorm<attune::NormShape{.rows = 2, .d_model = 4, .epsilon = EPSILON}>;
using Names = attune::HuggingFaceModule<attune::kLlamaLayer, attune::Sequential<Model>, "model.norm">;
attune::Status send(const attune::Sequential<Model>::Parameters& parameters) {
  return attune::write_safetensors<Names>(parameters, [](const char*, std::size_t) {});
}
