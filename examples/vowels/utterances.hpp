// The classifier of vowels, and the utterances that it is trained and tested with.
//
// The file is JapaneseVowels as .safetensors: x_train and x_test [n, 29, 12] of signed bytes; y_train,
// y_test, len_train and len_test [n] of bytes; in the metadata a scale.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <attune/attune.hpp>

namespace vowels {

inline constexpr int kLength = ATTUNE_EXAMPLE_SEQ_LEN;
inline constexpr int kFeatures = 12;
inline constexpr int kSpeakers = 9;
inline constexpr int kWidth = ATTUNE_EXAMPLE_D_MODEL;
inline constexpr attune::EncoderLayerShape kEncoder{
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
inline constexpr int kBatch = 16;
inline constexpr int kSteps = 1500;
inline constexpr attune::CosineSchedule kLearningRate{
    .peak = 0.005f, .total_steps = kSteps, .warmup_steps = kSteps / 20};

// The file.

inline char file[1 << 20];
inline std::size_t file_size;

inline std::string_view header() {
  if (file_size < 8) return {};
  std::size_t size = 0;
  for (int i = 7; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(file[i]);
  return size <= file_size - 8 ? std::string_view(file + 8, size) : std::string_view{};
}

// What follows `key` in the header, from the first of its characters that is a digit.
inline const char* number_after(std::string_view text, std::string_view key) {
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
inline std::string_view tensor(std::string_view name) {
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
inline bool find(std::string_view x, std::string_view y, std::string_view lengths, Part& part) {
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

/// Reads a file. Whether it is one of JapaneseVowels. The parts refer to it until the next load().
inline bool load(const char* path, Part& train, Part& test, float& scale) {
  std::FILE* stream = std::fopen(path, "rb");
  if (stream == nullptr) return false;
  file_size = std::fread(file, 1, sizeof file - 1, stream);  // a zero ends it, for strtoul
  std::fclose(stream);
  const char* number = number_after(header(), "\"scale\"");
  if (number == nullptr || !find("\"x_train\"", "\"y_train\"", "\"len_train\"", train) ||
      !find("\"x_test\"", "\"y_test\"", "\"len_test\"", test)) {
    return false;
  }
  scale = std::strtof(number, nullptr);
  return true;
}

struct Example {
  Model::Input tokens;
  attune::SequenceLength<kLength> mask;
  std::array<int, 1> speaker;
};

inline void take(const Part& part, float scale, int index, Example& to) {
  const char* from = part.utterances + index * kLength * kFeatures;
  for (float& value : to.tokens.values) value = static_cast<float>(static_cast<signed char>(*from++)) * scale;
  (void)to.mask.set_length(part.lengths[index]);  // which load() has checked
  to.speaker[0] = part.labels[index];
}

}  // namespace vowels
