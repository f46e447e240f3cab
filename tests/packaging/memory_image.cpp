// A trainer and a model for inference as a firmware has them: their memory reports, to be held against the
// linker's map.
#include <attune/attune.hpp>
#include <console.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 16, .d_model = 32, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4>;

struct Sequence {
  Layer::Input x;
  Layer::Output y;
};

// One object for each figure that is checked, with names that the linker keeps.
extern "C" {
Trainer trainer;
Trainer::BatchInput batch_inputs;
Trainer::BatchTarget batch_targets;
Sequence sequence;
extern const Layer::Parameters flash_parameters;
constinit const Layer::Parameters flash_parameters = {};
Layer::InferenceScratch inference_scratch;
}

int main() {
  trainer.initialise(attune::XavierUniform{}, attune::Rng{1});
  const Trainer::Result result = trainer.step(batch_inputs, batch_targets, {});
  Layer::forward(flash_parameters, sequence.x, sequence.y, inference_scratch);

  constexpr attune::MemoryReport kTraining = Trainer::memory();
  constexpr attune::MemoryReport kInference = attune::inference_memory<Layer>();
  port::print("trainer ", kTraining.object(), '\n');
  port::print("batch_inputs+batch_targets ", kTraining.inputs, '\n');
  port::print("flash_parameters ", kInference.parameters, '\n');
  port::print("inference_scratch ", kInference.scratch, '\n');
  port::print("sequence ", kInference.inputs, '\n');
  return result.ok() ? 0 : 1;
}
