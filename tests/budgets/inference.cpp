// A firmware that only infers, with its parameters in flash.
#include <attune/attune.hpp>
#include <instructions.hpp>

#include "../packaging/reported.hpp"

namespace {

constexpr attune::AttentionShape kShape{
    .seq_len = ATTUNE_BUDGET_SEQ_LEN, .d_model = ATTUNE_BUDGET_D_MODEL, .num_heads = ATTUNE_BUDGET_NUM_HEADS};
using Layer = attune::MultiHeadAttention<kShape>;
constexpr attune::MemoryReport kReport = attune::inference_memory<Layer>();

// As if trained: no zeros, and no symmetry between rows.
consteval Layer::Parameters some_parameters() {
  Layer::Parameters parameters{};
  unsigned state = 1;
  const auto fill = [&state](auto& tensor) {
    for (float& value : tensor.values) {
      state = state * 1664525U + 1013904223U;
      value = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * 0.3f;
    }
  };
  for (auto* projection : {&parameters.query, &parameters.key, &parameters.value, &parameters.output}) {
    fill(projection->weight);
    fill(projection->bias);
  }
  return parameters;
}

}  // namespace

// Names that the linker keeps.
extern "C" {
extern const Layer::Parameters flash_parameters;
constinit const Layer::Parameters flash_parameters = some_parameters();
Layer::InferenceScratch inference_scratch;
Layer::Input inference_input;
Layer::Output inference_output;
}
ATTUNE_REPORTED(flash_parameters, kReport.parameters);
ATTUNE_REPORTED(inference_scratch, kReport.scratch);
ATTUNE_REPORTED(inference_input, kReport.inputs - sizeof inference_output);
ATTUNE_REPORTED(inference_output, kReport.inputs - sizeof inference_input);

namespace {

[[gnu::noinline]] void infer() {
  Layer::forward(flash_parameters, inference_input, inference_output, inference_scratch);
}

[[gnu::noinline]] void prepare() {
  attune::Rng rng(42);
  for (float& value : inference_input.values) value = rng.uniform(-1.0f, 1.0f);
}

}  // namespace

int main() {
  prepare();
  port::begin_counting();
  infer();
  port::end_counting();
  return inference_output.values[0] == inference_output.values[0] ? 0 : 1;
}
