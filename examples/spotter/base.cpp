// Trains the spotter on a PC, on windows of a signal that the device does not hear, and writes what the
// device gets in flash. examples/run calls it.
//
//   --out PREFIX    PREFIX.safetensors
//   --steps N       without it 3000
#include <algorithm>
#include <memory>
#include <string>

#include <arguments.hpp>

#include "../base_files.hpp"
#include "../terminal.hpp"
#include "model.hpp"

namespace {

using namespace spotter;

constexpr int kSteps = 3000, kBatch = 16;
constexpr int kIgnored = -100;  // at the beginning of a window, where a phrase may have begun before it
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch>;

/// A window of the signal, and where in it the last tone of a keyword sounds.
struct Example {
  Model::Input tokens;
  std::array<int, kTokens> targets;

  void take(Signal& signal) {
    for (int t = 0; t < kTokens; ++t) {
      const bool in_keyword = signal.next(&tokens(t, 0));
      targets[static_cast<std::size_t>(t)] = t < kWindow - 1 ? kIgnored : in_keyword ? 1 : 0;
    }
  }
};

bool train(Trainer& trainer, int steps) {
  const auto total = static_cast<std::uint32_t>(steps);
  const attune::CosineSchedule learning_rate{.peak = 8e-3f, .total_steps = total, .warmup_steps = total / 20};
  terminal::Progress progress(steps);
  const auto example = std::make_unique<Example>();
  Signal signal(1000);
  float smooth = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      example->take(signal);
      if (!trainer.accumulate(example->tokens, example->targets, attune::CausalMask{}).ok()) return false;
    }
    const auto result = trainer.update(
        {.learning_rate = learning_rate(static_cast<std::uint32_t>(step)), .weight_decay = 0.01f});
    if (!result.ok()) return false;
    smooth = step == 0 ? result.loss : smooth + (result.loss - smooth) * 0.02f;
    progress.show(step + 1, smooth);
  }
  return true;
}

}  // namespace

int main() {
  const std::string out = base_files::word_after("--out");
  const int steps = std::max(port::argument("--steps", kSteps), 1);
  port::print("trains on a PC: ", steps, " steps of ", kBatch, " windows of ", kTokens, " tokens\n");
  const auto trainer = std::make_unique<Trainer>();
  trainer->initialize(attune::XavierUniform{}, attune::Rng(1));
  std::string file;
  const auto sink = [&file](const char* bytes, std::size_t count) { file.append(bytes, count); };
  if (!train(*trainer, steps) ||
      attune::write_safetensors<Names>(trainer->parameters(), sink) != attune::Status::kOk ||
      !base_files::write(out + ".safetensors", file)) {
    port::print("the spotter was not trained, or cannot be written to ", out.c_str(), '\n');
    return 1;
  }
  return 0;
}
