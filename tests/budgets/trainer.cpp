// A firmware that trains and does nothing else, with the memory plan, optimizer and mask of its build.
#include <attune/attune.hpp>
#include <instructions.hpp>

#include "../packaging/reported.hpp"

#ifndef ATTUNE_BUDGET_MASK
#define ATTUNE_BUDGET_MASK NoMask
#endif

namespace {

constexpr attune::AttentionShape kShape{
    .seq_len = ATTUNE_BUDGET_SEQ_LEN, .d_model = ATTUNE_BUDGET_D_MODEL, .num_heads = ATTUNE_BUDGET_NUM_HEADS};
using Layer = attune::MultiHeadAttention<kShape>;
using Optimizer = attune::ATTUNE_BUDGET_OPTIMIZER;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, Optimizer, 1, attune::ATTUNE_BUDGET_PLAN>;

}  // namespace

// Names that the linker keeps.
extern "C" {
Trainer trainer;
Trainer::BatchInput inputs;
Trainer::BatchTarget targets;
}
ATTUNE_REPORTED(trainer, Trainer::memory().object());
ATTUNE_REPORTED(inputs, Trainer::memory().inputs - sizeof targets);
ATTUNE_REPORTED(targets, Trainer::memory().inputs - sizeof inputs);

namespace {

[[gnu::noinline]] bool train() {
  static constexpr Optimizer::Options kOptions{.learning_rate = 3e-3f};
  return trainer.step(inputs, targets, kOptions, attune::NoClipping{}, attune::ATTUNE_BUDGET_MASK{}).ok();
}

// Numbers as in earnest: where there is no FPU, zeros take fewer instructions.
[[gnu::noinline]] void prepare() {
  attune::Rng rng(42);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  trainer.initialize(attune::XavierUniform{}, rng);
}

}  // namespace

// The second step is the one that counts: moments are zero before the first.
int main() {
  prepare();
  const bool started = train();
  port::begin_counting();
  const bool trained = train();
  port::end_counting();
  return started && trained ? 0 : 1;
}
