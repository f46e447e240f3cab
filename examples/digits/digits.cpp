// Trains a small transformer from scratch to read handwritten digits, on a PC or on a microcontroller, and
// tests it on images that it has not seen. d_model 16 has one encoder block, d_model 32 has two.
//
//   --steps N     the first N training steps only; 0 for none
//   --images N    the first N test images only
//   --seed N      other initial parameters and another order of the images
//   --hold-out N  does not train on the last N of the training images; 0 without it
//   --threads N   on a PC: on N threads, to the same bits (on_pc.hpp, which also writes a page about it)
//   --export 1    prints the trained parameters, for inference.cpp: a C++ header, each line behind "model "
#include <arguments.hpp>

#include "evaluation.hpp"
#include "training.hpp"
#if ATTUNE_EXAMPLE_ON_PC
#include "on_pc.hpp"
#endif

namespace {

using digits::kBatch;
using digits::kMemory;
using digits::kSteps;
using digits::Model;
using digits::Trainer;

// Without an FPU an emulated board takes the first steps of the same schedule only.
#if defined(__SOFTFP__)
constexpr int kDefaultSteps = 20;
#else
constexpr int kDefaultSteps = kSteps;
#endif

// All the RAM that training takes. Images arrive one by one, so only one of them exists.
Trainer trainer;
digits::Example example;
Model::Output logits;
digits::Evaluation evaluation;
terminal::LossCurve<60> curve;

struct Training {
  float last_loss;  // smoothed over about 50 steps
  attune::Status status;
  std::uint64_t instructions;  // of the first step; 0 where the program cannot tell
};

Training train(attune::Rng rng, int steps) {
  digits::Shuffle order(digits::kTrainImages - digits::held_out(0));
  Training training{};
  terminal::Progress progress(steps);
  for (int step = 0; step < steps; ++step) {
    if (step == 0) port::begin_counting();
    const Trainer::Result result = digits::take_step(trainer, example, rng, order, step);
    if (step == 0) training.instructions = port::end_counting();
    if (training.status = result.status; !result.ok()) return training;
    if (step == 0) training.last_loss = result.loss;
    training.last_loss += (result.loss - training.last_loss) * 0.02f;
    curve.add(step, steps, result.loss);
    progress.show(step + 1, training.last_loss);
  }
  return training;
}

[[gnu::noinline]] void print_model(int steps) {  // whose line of text is no part of main's frame
  port::print("model // digits, d_model ", digits::kWidth, ", after ", steps, " steps.\n");
  attune::write_cpp_header(
      trainer.parameters(), {.name_space = "digits", .name = "kTrainedParameters"},
      [](const char* text, std::size_t length) { port::print("model ", std::string_view(text, length)); });
  port::print("model namespace digits { inline constexpr int kTrainedSteps = ", steps, "; }\n");
}

}  // namespace

int main() {
  const int steps = std::min(port::argument("--steps", kDefaultSteps), kSteps);
  const int images = std::min(port::argument("--images", digits::kTestImages), digits::kTestImages);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  port::print("digits on ", port::name(), ": 8 tokens of 8 pixels, d_model ", digits::kWidth, ", heads ",
              digits::kEncoder.num_heads, ", blocks ", digits::kBlocks, ", ", digits::kParameters,
              " parameters; ", steps, " steps of ", kBatch, " images out of ",
              digits::kTrainImages - digits::held_out(0), '\n');
#if ATTUNE_EXAMPLE_ON_PC
  if (digits::on_pc::wanted()) return digits::on_pc::run(steps, images, seed);
#endif
  trainer.initialise(attune::XavierUniform{}, digits::rng_of_parameters(seed));

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  const Training training = train(digits::rng_of_images(seed), steps);
  const std::uint64_t microseconds = port::microseconds() - start;
  digits::evaluate(images, example.image, logits, evaluation,
                   [](const digits::Image& image, Model::Output& y) { trainer.predict(image, y); });
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  if (training.status != attune::Status::kOk) {
    port::print("training stopped: ", attune::message(training.status), '\n');
    return 1;
  }

  if (steps > 0) curve.print<85>();
  digits::print_memory();
  digits::print(evaluation);
  if (port::argument("--export", 0) == 1) print_model(steps);
  digits::print_result(evaluation, steps);
  port::print(" loss_last=", port::fixed(training.last_loss, 6));
  terminal::print_instructions("step", training.instructions);
  digits::print_result_end(evaluation.instructions, attune::hash(trainer.parameters()), kMemory.total(),
                           stack, heap_calls, microseconds);
  return 0;
}
