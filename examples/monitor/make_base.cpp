// Trains the classifier on a PC, as the machine leaves the factory, and prints base.hpp: the same bits on
// every PC.
//
//   c++ -std=c++20 -O2 -ffp-contract=off -Ilib -isystem /usr/include/eigen3 examples/monitor/make_base.cpp -o
//   make_base
//   ./make_base > examples/monitor/base.hpp
#include <cstdio>

#include "model.hpp"

namespace {

constexpr int kSteps = 1500, kBatch = 16;
constexpr attune::CrossEntropyOptions kSmoothed{.label_smoothing = 0.05};
constexpr attune::CosineSchedule kLearningRate{
    .peak = 5e-3f, .total_steps = kSteps, .warmup_steps = kSteps / 20};
constexpr int kUnseen = 2000;

attune::Trainer<monitor::Base, attune::CrossEntropy<kSmoothed>, attune::AdamW, kBatch> trainer;

/// A window of each condition's stretch: numbers are 8 apart.
int draw(monitor::Machine& machine, int number, monitor::Window& window) {
  machine.start(8 * number, {});
  for (int i = 0; i < monitor::kSamples; ++i) machine.next(&window(i, 0));
  return machine.condition(8 * number);
}

}  // namespace

int main() {
  monitor::Machine on_the_bench(1), another(2);
  monitor::Window window;
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  for (int step = 0, number = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBatch; ++i, ++number) {
      const int condition[] = {draw(on_the_bench, number, window)};
      if (!trainer.accumulate(window, condition).ok()) return 1;
    }
    const float rate = kLearningRate(static_cast<std::uint32_t>(step));
    if (!trainer.update({.learning_rate = rate, .weight_decay = 0.05f}).ok()) return 1;
  }
  int right = 0;
  for (int number = 0; number < kUnseen; ++number) {
    const int condition = draw(another, number, window);
    monitor::Logits logits;
    if (trainer.predict(window, logits) != attune::Status::kOk) return 1;
    right += monitor::most_likely(logits) == condition;
  }
  std::fprintf(stderr, "recognized %d of %d windows of another machine\n", right, kUnseen);
  attune::write_cpp_header(
      trainer.parameters(), {.name_space = "monitor", .name = "kBaseParameters"},
      [](const char* text, std::size_t length) { std::fwrite(text, 1, length, stdout); });
}
