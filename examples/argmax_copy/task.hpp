// The task of argmax_copy: to find the token whose first feature is the largest and copy that token to every
// output row. Entries are uniform in [-5, 10); a sequence counts as solved when every entry of the output is
// within 0.5 of its target. What the program and the page for browsers share.
#pragma once

#include <algorithm>

#include <attune/attune.hpp>
#if ATTUNE_EXAMPLE_CORES == 2
#include <second_core.hpp>
#endif

namespace argmax_copy {

constexpr attune::AttentionShape kShape{.seq_len = ATTUNE_EXAMPLE_SEQ_LEN,
                                        .d_model = ATTUNE_EXAMPLE_D_MODEL,
                                        .num_heads = ATTUNE_EXAMPLE_NUM_HEADS};
constexpr int kEntries = kShape.seq_len * kShape.d_model;
constexpr bool kSmall = kEntries <= 64;
constexpr int kBatch = kSmall ? 64 : 32;
constexpr int kSteps = kSmall ? 4000 : 8000;
constexpr float kPeakLearningRate = kSmall ? 0.1f : 0.02f;
constexpr int kUnseen = 1024;

using Layer = attune::MultiHeadAttention<kShape>;
#if ATTUNE_EXAMPLE_CORES == 2
using Cores = attune::TwoCores<port::SecondCore>;
using Trainer = attune::CrewTrainer<Cores, Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;
constexpr attune::MemoryReport kMemory = Trainer::memory();
#else
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;
constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() <= (kSmall            ? 4
                                  : kEntries <= 128 ? 14
                                                    : 90) *
                                     1024);  // the RAM contract, checked by the compiler
#endif

// The model sees entries with mean 0 and variance 1: (entry − 2.5) / √18.75.
constexpr float kMean = 2.5f;
constexpr float kDeviation = 4.33012702f;

// All the RAM that training takes. Sequences arrive one by one, so only one of them exists.
struct Example {
  Layer::Input tokens;
  Layer::Output target;
};
inline Trainer trainer;
inline Example example;

// The token to copy.
inline int largest_token(const Layer::Input& tokens) {
  int largest = 0;
  for (int i = 1; i < kShape.seq_len; ++i) {
    if (tokens(i, 0) > tokens(largest, 0)) largest = i;
  }
  return largest;
}

[[gnu::noinline]] inline void draw(attune::Rng& rng, Example& to) {
  for (float& value : to.tokens.values) value = (rng.uniform(-5.0f, 10.0f) - kMean) / kDeviation;
  const int largest = largest_token(to.tokens);
  for (int i = 0; i < kShape.seq_len; ++i) {
    for (int j = 0; j < kShape.d_model; ++j) to.target(i, j) = to.tokens(largest, j);
  }
}

[[gnu::noinline]] inline bool solved(const Layer::Output& output, const Layer::Output& target) {
  for (int i = 0; i < Layer::Output::size; ++i) {
    const float error = (output.values[i] - target.values[i]) * kDeviation;
    if (!(error <= 0.5f && error >= -0.5f)) return false;
  }
  return true;
}

#if ATTUNE_EXAMPLE_CORES == 2

// Both cores take sequences of one batch, so all of it exists.
inline constinit Cores cores{};
inline Trainer::BatchInput batch_input;
inline Trainer::BatchTarget batch_target;

inline void start_cores() { cores.start(); }
[[gnu::noinline]] inline Trainer::Result take_step(attune::Rng& rng, const attune::AdamW::Options& options) {
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    draw(rng, example);
    std::copy_n(example.tokens.values, kEntries, batch_input.values + kEntries * sequence);
    std::copy_n(example.target.values, kEntries, batch_target.values + kEntries * sequence);
  }
  return trainer.step(cores, batch_input, batch_target, options);
}
inline attune::Status predict(const Layer::Input& tokens, Layer::Output& output) {
  return trainer.predict(cores, tokens, output);
}

#else

inline void start_cores() {}
[[gnu::noinline]] inline Trainer::Result take_step(attune::Rng& rng, const attune::AdamW::Options& options) {
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    draw(rng, example);
    const auto added = trainer.accumulate(example.tokens, example.target);
    if (!added.ok()) return Trainer::Result::refused(added.status);
  }
  return trainer.update(options);
}
inline attune::Status predict(const Layer::Input& tokens, Layer::Output& output) {
  return trainer.predict(tokens, output);
}

#endif

inline attune::AdamW::Options options_of(int step) {
  constexpr attune::CosineSchedule kLearningRate{
      .peak = kPeakLearningRate, .total_steps = kSteps, .warmup_steps = 20};
  return {
      .learning_rate = kLearningRate(static_cast<std::uint32_t>(step)), .beta2 = 0.99, .weight_decay = 0.0f};
}

}  // namespace argmax_copy
