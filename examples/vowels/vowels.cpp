// Trains a small transformer to tell nine speakers of a Japanese vowel apart, from utterances of 7 to 29
// tokens: of shorter ones no more is computed than they have. On a PC.
//
//   --data PATH   JapaneseVowels (utterances.hpp)
//   --steps N     the first N training steps only
//   --seed N      other initial parameters and another order of the utterances
#include <algorithm>
#include <string_view>

#include <arguments.hpp>
#include <attune/attune.hpp>
#include <instructions.hpp>

#include "../terminal.hpp"
#include "utterances.hpp"

namespace {

using namespace vowels;

using Trainer = attune::Trainer<Model, Loss, attune::AdamW, kBatch>;
constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() <= 96 * 1024);  // the RAM contract, checked by the compiler

// The word after --data; empty where there is none. `line` holds it.
template <std::size_t size>
const char* data_path(char (&line)[size]) {
  constexpr std::string_view kName = "--data ";
  port::command_line(line, size);
  const std::size_t at = std::string_view(line).find(kName);
  if (at == std::string_view::npos) return "";
  char* path = line + at + kName.size();
  char* end = path;
  while (*end != '\0' && *end != ' ') ++end;
  *end = '\0';
  return path;
}

Trainer trainer;
Example example;
Model::Output logits;
std::uint64_t step_instructions, inference_instructions;  // of the first; 0 where nobody counts
terminal::LossCurve<60> curve;
std::uint16_t confusion[kSpeakers][kSpeakers];

attune::Status train(const Part& part, float scale, attune::Rng rng, int steps) {
  terminal::Progress progress(steps);
  float smooth = 0;
  for (int step = 0; step < steps; ++step) {
    if (step == 0) port::begin_counting();
    for (int i = 0; i < kBatch; ++i) {
      take(part, scale, static_cast<int>(rng.next() % static_cast<unsigned>(part.count)), example);
      const auto added = trainer.accumulate(example.tokens, example.speaker, example.mask);
      if (!added.ok()) return added.status;
    }
    const Trainer::Result result =
        trainer.update({.learning_rate = kLearningRate(static_cast<std::uint32_t>(step))});
    if (step == 0) step_instructions = port::end_counting();
    if (!result.ok()) return result.status;
    smooth = step == 0 ? result.loss : smooth + (result.loss - smooth) * 0.02f;
    curve.add(step, steps, result.loss);
    progress.show(step + 1, smooth);
  }
  return attune::Status::kOk;
}

int test(const Part& part, float scale) {
  int correct = 0;
  for (int i = 0; i < part.count; ++i) {
    take(part, scale, i, example);
    if (i == 0) port::begin_counting();
    if (trainer.predict(example.tokens, logits, example.mask) != attune::Status::kOk) continue;
    if (i == 0) inference_instructions = port::end_counting();
    int largest = 0;
    for (int c = 1; c < kSpeakers; ++c) {
      if (logits(0, c) > logits(0, largest)) largest = c;
    }
    ++confusion[example.speaker[0]][largest];
    correct += largest == example.speaker[0];
  }
  return correct;
}

}  // namespace

int main() {
  Part training_part{}, test_part{};
  float scale = 0;
  char line[1024];
  const char* const path = data_path(line);
  if (*path == '\0') {
    port::print("vowels needs --data PATH, a .safetensors file of JapaneseVowels\n");
    return 2;
  }
  if (!load(path, training_part, test_part, scale)) {
    port::print("vowels cannot read ", path, " as JapaneseVowels\n");
    return 2;
  }
  const int steps = std::min(port::argument("--steps", kSteps), kSteps);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  port::print("vowels on ", port::name(), ": up to ", kLength, " tokens of ", kFeatures,
              " features, d_model ", kWidth, ", heads ", kEncoder.attention.num_heads, ", ",
              sizeof(Model::Parameters) / sizeof(float), " parameters; ", steps, " steps of ", kBatch, " of ",
              training_part.count, " utterances\n");
  trainer.initialize(attune::XavierUniform{}, attune::Rng(2 * seed - 1));

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  const attune::Status status = train(training_part, scale, attune::Rng(2 * seed), steps);
  const int correct = test(test_part, scale);
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  const auto hundredths = static_cast<std::uint32_t>((port::microseconds() - start) / 10'000);
  if (status != attune::Status::kOk) {
    port::print("training stopped: ", attune::message(status), '\n');
    return 1;
  }

  if (steps > 0) curve.print<85>();
  terminal::print_memory("training", kMemory);
  terminal::print_confusion(confusion);
  const float accuracy = static_cast<float>(correct) / static_cast<float>(test_part.count);
  port::print("recognized the speaker of ", correct, " of ", test_part.count,
              " utterances it has not heard, ", port::fixed(100 * accuracy, 1), " %\n");
  port::print("result example=vowels target=", port::name(), " seq_len=", kLength, " d_model=", kWidth,
              " heads=", kEncoder.attention.num_heads, " steps=", steps,
              " accuracy=", port::fixed(accuracy, 4), " ram_bytes=", kMemory.total(), " stack_bytes=", stack,
              " heap_calls=", heap_calls,
              " parameters_hash=", port::hex8(attune::hash_bits(trainer.parameters())));
  terminal::print_instructions("step", step_instructions);
  terminal::print_instructions("inference", inference_instructions);
  port::print(" seconds=", hundredths / 100, '.', hundredths % 100 / 10, hundredths % 10, '\n');
  return 0;
}
