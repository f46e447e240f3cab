// A trainer fed with whole batches and a model for inference as a firmware has them: their memory reports, to
// be held against the image. tests/budgets has the images of one plan, optimizer or shape each.
#include <attune/attune.hpp>

#include <flash_model.hpp>

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

// A model in a file that is part of the firmware: nothing of it is in RAM.
constexpr attune::EncoderLayerShape kEncoder{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2},
                                             .d_ff = 6};
using Transformer = attune::Sequential<attune::Linear<attune::LinearShape{3, 2, 4}>,
                                       attune::Repeat<2, attune::EncoderLayer<kEncoder>>,
                                       attune::Linear<attune::LinearShape{3, 4, 2}>>;
using Names = attune::PyTorchModule<Transformer, "embed", "encoder.layers", "head">;
extern "C" {
Transformer::InferenceScratch transformer_scratch;
}

constexpr attune::MemoryReport kTraining = Trainer::memory();
constexpr attune::MemoryReport kInference = attune::inference_memory<Layer>();
ATTUNE_REPORTED(trainer, kTraining.object());
ATTUNE_REPORTED(batch, kTraining.inputs);
ATTUNE_REPORTED(flash_parameters, kInference.parameters);
ATTUNE_REPORTED(inference_scratch, kInference.scratch);
ATTUNE_REPORTED(sequence, kInference.inputs);
ATTUNE_REPORTED(flash_model_file, flash_model::kSize);
ATTUNE_REPORTED(transformer_scratch, attune::inference_memory<Transformer>().scratch);

int main() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  const Trainer::Result result = trainer.step(batch.inputs, batch.targets, {});
  Layer::forward(flash_parameters, sequence.x, sequence.y, inference_scratch);
  Transformer::Input x{};
  Transformer::Output y;
  Transformer::forward(attune::kInFlash<Names, flash_model>, x, y, transformer_scratch);
  return result.ok() && y(0, 0) == y(0, 0) ? 0 : 1;
}
