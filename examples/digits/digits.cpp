// Trains a small transformer from scratch to read handwritten digits, on a PC or on a microcontroller, and
// tests it on images that it has not seen. d_model 16 has one encoder block, d_model 32 has two.
//
//   --steps N     the first N training steps only; 0 for none
//   --images N    the first N test images only
//   --seed N      other initial parameters and another order of the images
//   --export 1    prints the trained parameters, for inference.cpp: a C++ header, each line behind "model "
#include <arguments.hpp>

#include "evaluation.hpp"

namespace {

using digits::kSmall;
using digits::Model;

constexpr int kBatch = 32;
constexpr int kSteps = 1800;  // 40 epochs
constexpr float kPeakLearningRate = kSmall ? 0.01f : 0.003f;
// Without an FPU an emulated board takes the first steps of the same schedule only.
#if defined(__SOFTFP__)
constexpr int kDefaultSteps = 20;
#else
constexpr int kDefaultSteps = kSteps;
#endif

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
using Trainer = attune::Trainer<Model, Loss, attune::AdamW, kBatch>;
constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() <= (kSmall ? 56 : 320) * 1024);  // the RAM contract, checked by the compiler

// All the RAM that training takes. Images arrive one by one, so only one of them exists.
Trainer trainer;
digits::Example example;
Model::Output logits;
digits::Evaluation evaluation;
terminal::LossCurve<60> curve;

struct Training {
  float last_loss;  // smoothed over about 50 steps
  attune::Status status;
};

Training train(attune::Rng rng, int steps) {
  static constexpr attune::CosineSchedule kLearningRate{
      .peak = kPeakLearningRate, .total_steps = kSteps, .warmup_steps = kSteps / 20};
  digits::Shuffle<digits::kTrainImages> order;
  Training training{};
  terminal::Progress progress(steps);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      digits::draw(rng, order, example);
      training.status = trainer.accumulate(example.image, example.label);
      if (training.status != attune::Status::kOk) return training;
    }
    const Trainer::Result result =
        trainer.update({.learning_rate = kLearningRate(static_cast<std::uint32_t>(step))});
    if (training.status = result.status; !result.ok()) return training;
    if (step == 0) training.last_loss = result;
    training.last_loss += (result - training.last_loss) * 0.02f;
    curve.add(step, steps, result);
    progress.show(step + 1, training.last_loss);
  }
  return training;
}

void print_model(int steps) {
  port::print("model // Parameters of digits, d_model ", digits::kWidth, ", after ", steps,
              " steps: the bits of floats.\n");
  port::print("model #pragma once\nmodel #include <cstdint>\nmodel namespace digits {\n");
  port::print("model inline constexpr int kTrainedSteps = ", steps, ";\n");
  port::print("model inline constexpr std::uint32_t kTrainedParameters[] = {");
  int count = 0;
  attune::for_each_tensor(
      [&count](const attune::TensorPath&, const auto& tensor) {
        for (const float value : tensor.values) {
          port::print(count++ % 8 == 0 ? "\nmodel     0x" : " 0x",
                      port::hex8(std::bit_cast<std::uint32_t>(value)), ',');
        }
      },
      trainer.parameters());
  port::print("\nmodel };\nmodel }  // namespace digits\n");
}

}  // namespace

int main() {
  const int steps = std::min(port::argument("--steps", kDefaultSteps), kSteps);
  const int images = std::min(port::argument("--images", digits::kTestImages), digits::kTestImages);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  port::print("digits on ", port::name(), ": 8 tokens of 8 pixels, d_model ", digits::kWidth, ", heads ",
              digits::kEncoder.num_heads, ", blocks ", digits::kBlocks, ", ", digits::kParameters,
              " parameters; ", steps, " steps of ", kBatch, " images\n");
  trainer.initialise(attune::XavierUniform{}, attune::Rng(2 * seed - 1));

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  const Training training = train(attune::Rng(2 * seed), steps);
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
  port::print("RAM of training\n");
  terminal::print_memory(kMemory);
  port::print("RAM of inference alone, parameters included\n");
  terminal::print_memory(attune::inference_memory<Model>());
  digits::print(evaluation);
  if (port::argument("--export", 0) == 1) print_model(steps);
  digits::print_result(evaluation, steps);
  port::print(" loss_last=", port::fixed(training.last_loss, 6));
  digits::print_result_end(attune::hash(trainer.parameters()), kMemory.total(), stack, heap_calls,
                           microseconds);
  return 0;
}
