// Trains a small transformer from scratch to read handwritten digits, on a PC or on a microcontroller, and
// tests it on images that it has not seen. d_model 16 has one encoder block, d_model 32 has two.
//
//   --steps N     the first N training steps only; 0 for none
//   --images N    the first N test images only
//   --seed N      other initial parameters and another order of the images
//   --validation N  does not train on the last N of the training images; 0 without it
//   --threads N   on a PC: on N threads, to the same bits (on_pc.hpp, which also writes a page about it)
//   --precision P float, int8, bf16 or int8_bf16: of examples/run, which builds a program for each
//   --memory psram=8  with gradients, parameters and moments in slow memory (of examples/run, as --precision)
//   --export 1    prints what it learned: a .safetensors file, for PyTorch and for inference.cpp, as text
//
// With a file of parameters in flash (examples/run --weights FILE --steps N) it learns further from those.
#include <algorithm>

#include <arguments.hpp>

#include "evaluation.hpp"
#include "state_dict.hpp"
#include "training.hpp"
#if ATTUNE_EXAMPLE_ON_PC
#include "on_pc.hpp"
#endif
#if ATTUNE_EXAMPLE_WEIGHTS
#include <digits_weights.hpp>
#endif

namespace {

using digits::kBatch;
using digits::kMemory;
using digits::kSteps;
using digits::Model;
using digits::Trainer;

// All the RAM that training takes. Images arrive one by one, so only one of them exists.
#if ATTUNE_EXAMPLE_PLACED
[[gnu::section(".psram.trainer")]]
#endif
Trainer trainer;
digits::Example example;
Model::Output logits;
digits::Evaluation evaluation;
terminal::LossCurve<60> curve;

#if ATTUNE_EXAMPLE_WEIGHTS

// From the parameters of a file on; that it is the model's is checked by the compiler.
static_assert(sizeof digits::kParametersInFlash<digits_weights> > 0);
constexpr int kDefaultSteps = 0;
attune::CosineSchedule learning_rate(int steps) { return digits::further_learning_rate(steps); }
attune::Status begin(std::uint64_t) {
  return trainer.load([](Model::Parameters& parameters) {
    return attune::read_safetensors<digits::StateDictInFile>(attune::bytes_of<digits_weights>(), parameters);
  });
}
// What was not trained is written as it was read: the logits, if there are some, are still of these
// parameters.
[[gnu::noinline]] void print_file(int steps) {
  if (steps > 0) return digits::print_state_dict(trainer.parameters());
  digits::print_file([](auto& sink) {
    return attune::rewrite_safetensors<digits::StateDictInFile>(attune::bytes_of<digits_weights>(),
                                                                trainer.parameters(), sink);
  });
}

#else

// From initial parameters on. Without an FPU an emulated board takes the first steps of the same schedule
// only.
#if defined(__SOFTFP__) || defined(__riscv_float_abi_soft)
constexpr int kDefaultSteps = 20;
#else
constexpr int kDefaultSteps = kSteps;
#endif
constexpr const attune::CosineSchedule& learning_rate(int) { return digits::kLearningRate; }
attune::Status begin(std::uint64_t seed) {
  trainer.initialize(attune::XavierUniform{}, digits::rng_of_parameters(seed));
  return attune::Status::kOk;
}
void print_file(int) { digits::print_state_dict(trainer.parameters()); }

#endif

struct Training {
  float last_loss;  // smoothed over about 50 steps
  attune::Status status;
  std::uint64_t instructions;  // of the first step; 0 where the program cannot tell
};

Training train(attune::Rng rng, int steps) {
  const attune::CosineSchedule& rates = learning_rate(steps);
  digits::Shuffle order(digits::kTrainImages - digits::held_out(0));
  Training training{};
  terminal::Progress progress(steps);
  for (int step = 0; step < steps; ++step) {
    if (step == 0) port::begin_counting();
    const Trainer::Result result = digits::take_step(trainer, example, rng, order, step, rates);
    if (step == 0) training.instructions = port::end_counting();
    if (training.status = result.status; !result.ok()) return training;
    if (step == 0) training.last_loss = result.loss;
    training.last_loss += (result.loss - training.last_loss) * 0.02f;
    curve.add(step, steps, result.loss);
    progress.show(step + 1, training.last_loss);
  }
  return training;
}

}  // namespace

int main() {
  const int steps = std::min(port::argument("--steps", kDefaultSteps), kSteps);
  const int images = std::min(port::argument("--images", digits::kTestImages), digits::kTestImages);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  port::print("digits on ", port::name(), ": 8 tokens of 8 pixels, d_model ", digits::kWidth, ", heads ",
              digits::kEncoder.attention.num_heads, ", blocks ", digits::kBlocks, ", ", digits::kParameters,
              " parameters; ", steps, " steps of ", kBatch, " images out of ",
              digits::kTrainImages - digits::held_out(0), '\n');
#if ATTUNE_EXAMPLE_ON_PC
  if (digits::on_pc::wanted()) return digits::on_pc::run(steps, images, seed);
#endif
  if (const attune::Status status = begin(seed); status != attune::Status::kOk) {
    port::print("no parameters to begin with: ", attune::message(status), '\n');
    return 1;
  }

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  const Training training = train(digits::rng_of_images(seed), steps);
  const std::uint64_t microseconds = port::microseconds() - start;
  digits::evaluate(
      images, example.image, logits, evaluation,
      [](const digits::Image& image, Model::Output& y) { return trainer.predict(image, y); }, [](int) {});
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  if (training.status != attune::Status::kOk) {
    port::print("training stopped: ", attune::message(training.status), '\n');
    return 1;
  }

  if (steps > 0) curve.print<85>();
  digits::print_memory();
  digits::print(evaluation);
  if (port::argument("--export", 0) == 1) print_file(steps);
  digits::print_result(evaluation);
  port::print(" precision=", digits::kPrecision, " steps=", steps,
              " loss_last=", port::fixed(training.last_loss, 6));
  if (steps > 0) terminal::print_instructions("step", training.instructions);
  digits::print_result_end(evaluation.instructions, attune::hash_bits(trainer.parameters()),
                           kMemory.total() + digits::kPlaced, stack, heap_calls, microseconds);
  return 0;
}
