// A trainer fed with whole batches and a model for inference as a firmware has them: their memory reports, to
// be held against the image. tests/budgets has the images of one plan, optimiser or shape each.
#include <attune/attune.hpp>

#include "reported.hpp"

constexpr attune::AttentionShape kShape{.seq_len = 16, .d_model = 32, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4>;

struct Sequence {
  Layer::Input x;
  Layer::Output y;
};
struct Batch {
  Trainer::BatchInput inputs;
  Trainer::BatchTarget targets;
};

// One object for each figure that is checked, with names that the linker keeps.
extern "C" {
Trainer trainer;
Batch batch;
Sequence sequence;
extern const Layer::Parameters flash_parameters;
constinit const Layer::Parameters flash_parameters = {};
Layer::InferenceScratch inference_scratch;
}

constexpr attune::MemoryReport kTraining = Trainer::memory();
constexpr attune::MemoryReport kInference = attune::inference_memory<Layer>();
ATTUNE_REPORTED(trainer, kTraining.object());
ATTUNE_REPORTED(batch, kTraining.inputs);
ATTUNE_REPORTED(flash_parameters, kInference.parameters);
ATTUNE_REPORTED(inference_scratch, kInference.scratch);
ATTUNE_REPORTED(sequence, kInference.inputs);

int main() {
  trainer.initialise(attune::XavierUniform{}, attune::Rng{1});
  const Trainer::Result result = trainer.step(batch.inputs, batch.targets, {});
  Layer::forward(flash_parameters, sequence.x, sequence.y, inference_scratch);
  return result.ok() ? 0 : 1;
}
