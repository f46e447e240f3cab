// A firmware that trains the digits' classifier on both cores and does nothing else: batches of 32.
#include <attune/attune.hpp>
#include <instructions.hpp>
#include <second_core.hpp>

#include "../../examples/digits/model.hpp"

namespace {

using Cores = attune::TwoCores<port::SecondCore>;
using Trainer = attune::CrewTrainer<Cores, digits::Model, attune::CrossEntropy<>, attune::AdamW, 32>;
constinit Cores cores{};

}  // namespace

// Names that the linker keeps.
extern "C" {
Trainer trainer;
Trainer::BatchInput inputs;
Trainer::BatchTarget targets;
}

namespace {

[[gnu::noinline]] bool train() { return trainer.step(cores, inputs, targets, {.learning_rate = 3e-3f}).ok(); }

[[gnu::noinline]] void prepare() {
  attune::Rng rng(42);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (int& label : targets) label = static_cast<int>(rng.next() % digits::kClasses);
  trainer.initialize(attune::XavierUniform{}, rng);
}

}  // namespace

// The second step is the one that counts: moments are zero before the first.
int main() {
  cores.start();
  prepare();
  const bool started = train();
  port::begin_counting();
  const bool trained = train();
  port::end_counting();
  return started && trained ? 0 : 1;
}
