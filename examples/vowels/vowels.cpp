// Trains a small transformer to tell nine speakers of a Japanese vowel apart, from utterances of 7 to 29
// tokens: of shorter ones no more is computed than they have. On a PC.
//
//   --data PATH   JapaneseVowels as .safetensors: x_train and x_test [n, 29, 12] of signed bytes; y_train,
//                 y_test, len_train and len_test [n] of bytes; in the metadata a scale
//   --steps N     the first N training steps only
//   --seed N      other initial parameters and another order of the utterances
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <arguments.hpp>
#include <attune/attune.hpp>
#include <instructions.hpp>

#include "../terminal.hpp"

namespace {

constexpr int kLength = ATTUNE_EXAMPLE_SEQ_LEN;
constexpr int kFeatures = 12;
constexpr int kSpeakers = 9;
constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kLength, .d_model = kWidth, .num_heads = ATTUNE_EXAMPLE_NUM_HEADS},
    .d_ff = 2 * kWidth,
    .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};
using Model =
    attune::Sequential<attune::Linear<attune::LinearShape{kLength, kFeatures, kWidth}>,
                       attune::LearnedPositions<attune::PositionShape{kLength, kWidth}>,
                       attune::EncoderLayer<kEncoder>, attune::Pooling<attune::PoolingShape{kLength, kWidth}>,
                       attune::Linear<attune::LinearShape{1, kWidth, kSpeakers}>>;
using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
constexpr int kBatch = 16;
constexpr int kSteps = 1500;
using Trainer = attune::Trainer<Model, Loss, attune::AdamW, kBatch>;
constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() <= 96 * 1024);  // the RAM contract, checked by the compiler

// The file.

char file[1 << 20];
std::size_t file_size;

std::string_view header() {
  if (file_size < 8) return {};
  std::size_t size = 0;
  for (int i = 7; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(file[i]);
  return size <= file_size - 8 ? std::string_view(file + 8, size) : std::string_view{};
}

// What follows `key` in the header, from the first of its characters that is a digit.
const char* number_after(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == text.npos) return nullptr;
  at = text.find_first_of("0123456789", at + key.size());
  return at == text.npos ? nullptr : text.data() + at;
}

struct Part {
  const char* utterances;  // [count, kLength, kFeatures]
  const char* labels;
  const char* lengths;
  int count;
};

// The bytes of a tensor; none if the header has no such tensor or it leaves the file.
std::string_view tensor(std::string_view name) {
  std::string_view rest = header();
  const std::size_t at = rest.find(name);
  if (at == rest.npos) return {};
  const char* number = number_after(rest.substr(at), "\"data_offsets\"");
  if (number == nullptr) return {};
  char* end;
  const std::size_t from = std::strtoul(number, &end, 10);
  while (*end != '\0' && (*end < '0' || *end > '9')) ++end;
  const std::size_t to = std::strtoul(end, nullptr, 10);
  const std::size_t base = 8 + rest.size();
  return from <= to && to <= file_size - base ? std::string_view(file + base + from, to - from)
                                              : std::string_view{};
}

// Whether `part` is complete: every utterance with a length and a label that the model can have.
bool find(std::string_view x, std::string_view y, std::string_view lengths, Part& part) {
  const std::string_view all = tensor(x), labels = tensor(y), tokens = tensor(lengths);
  part = {all.data(), labels.data(), tokens.data(), static_cast<int>(labels.size())};
  if (labels.size() < 2 || tokens.size() != labels.size() ||
      all.size() != labels.size() * kLength * kFeatures) {
    return false;
  }
  for (const char label : labels) {
    if (label < 0 || label >= kSpeakers) return false;
  }
  for (const char length : tokens) {
    if (length < 1 || length > kLength) return false;
  }
  return true;
}

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

bool load(Part& train, Part& test, float& scale) {
  char line[1024];
  const char* path = data_path(line);
  if (*path == '\0') {
    port::print("vowels needs --data PATH, a .safetensors file of JapaneseVowels\n");
    return false;
  }
  std::FILE* stream = std::fopen(path, "rb");
  if (stream != nullptr) {
    file_size = std::fread(file, 1, sizeof file - 1, stream);  // a zero ends it, for strtoul
    std::fclose(stream);
  }
  const char* number = number_after(header(), "\"scale\"");
  if (number == nullptr || !find("\"x_train\"", "\"y_train\"", "\"len_train\"", train) ||
      !find("\"x_test\"", "\"y_test\"", "\"len_test\"", test)) {
    port::print("vowels cannot read ", path, " as JapaneseVowels\n");
    return false;
  }
  scale = std::strtof(number, nullptr);
  return true;
}

// Training and testing.

struct Example {
  Model::Input tokens;
  attune::SequenceLength<kLength> mask;
  std::array<int, 1> speaker;
};

Trainer trainer;
Example example;
Model::Output logits;
std::uint64_t step_instructions, inference_instructions;  // of the first; 0 where nobody counts
terminal::LossCurve<60> curve;
std::uint16_t confusion[kSpeakers][kSpeakers];

void take(const Part& part, float scale, int index, Example& to) {
  const char* from = part.utterances + index * kLength * kFeatures;
  for (float& value : to.tokens.values) value = static_cast<float>(static_cast<signed char>(*from++)) * scale;
  (void)to.mask.set_length(part.lengths[index]);  // which load() has checked
  to.speaker[0] = part.labels[index];
}

attune::Status train(const Part& part, float scale, attune::Rng rng, int steps) {
  static constexpr attune::CosineSchedule kLearningRate{
      .peak = 0.005f, .total_steps = kSteps, .warmup_steps = kSteps / 20};
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
  if (!load(training_part, test_part, scale)) return 2;
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
