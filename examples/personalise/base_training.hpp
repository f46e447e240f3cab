// How a PC trains the base, with the speakers that it has: recordings are moved a little in time, pitch,
// color and noise, so that it takes to voices that it has not heard.
#pragma once

#include <algorithm>
#include <memory>

#include "corpus.hpp"
#include "model.hpp"

namespace personalise {

inline constexpr int kBaseSteps = 3000, kBaseBatch = 32;

namespace detail {

/// Linear between two neighbors of values[count], `stride` apart; the outermost beyond them.
inline float between(const signed char* values, int stride, int count, float at) {
  const float inside = std::clamp(at, 0.0f, static_cast<float>(count - 1));
  const int first = std::min(static_cast<int>(inside), count - 1), second = std::min(first + 1, count - 1);
  const float part = inside - static_cast<float>(first);
  return static_cast<float>(values[first * stride]) * (1 - part) +
         static_cast<float>(values[second * stride]) * part;
}

/// A recording as somebody else, somewhere else, might have said it.
inline void load_moved(const Recording& recording, attune::Rng& rng, Example& example) {
  const float tempo = rng.uniform(0.85f, 1.18f), pitch = rng.uniform(-0.8f, 0.8f);
  const float tilt = rng.uniform(-1.5f, 1.5f), noise = rng.uniform(0.0f, 4.0f);
  const int tokens = recording.length;
  const int length = std::clamp(static_cast<int>(static_cast<float>(tokens) * tempo + 0.5f), 1, kTokens);
  const float step = static_cast<float>(tokens) / static_cast<float>(length);
  for (int token = 0; token < kTokens; ++token) {
    for (int band = 0; band < kBands; ++band) {
      float& value = example.tokens(token, band);
      value = 0;
      if (token >= length) continue;
      const int from = std::min(static_cast<int>(static_cast<float>(token) * step), tokens - 1);
      const float heard =
          between(recording.bands + from * kBands, 1, kBands, static_cast<float>(band) + pitch);
      value = (heard + tilt * (static_cast<float>(band) - 7.5f) + noise * rng.normal()) * kScale;
    }
  }
  (void)example.padding.set_length(length);
  example.digit[0] = recording.digit;
}

}  // namespace detail

/// Trains a base of `seed`; nullptr where that fails. `on_step(step, loss)` is called behind each step.
template <class OnStep>
std::unique_ptr<Base::Parameters> train_base(const std::vector<const Recording*>& recordings,
                                             std::uint64_t seed, const OnStep& on_step) {
  using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
  using Trainer = attune::Trainer<Base, Loss, attune::AdamW, kBaseBatch>;
  constexpr attune::CosineSchedule kLearningRate{
      .peak = 5e-3f, .total_steps = kBaseSteps, .warmup_steps = kBaseSteps / 20};
  const auto trainer = std::make_unique<Trainer>();
  attune::Rng rng(2 * seed);
  trainer->initialize(attune::XavierUniform{}, attune::Rng(2 * seed - 1));
  Example example;
  for (int step = 0; step < kBaseSteps; ++step) {
    for (int i = 0; i < kBaseBatch; ++i) {
      detail::load_moved(*recordings[rng.next() % recordings.size()], rng, example);
      if (!trainer->accumulate(example.tokens, example.digit, example.padding).ok()) return nullptr;
    }
    const auto result = trainer->update(
        {.learning_rate = kLearningRate(static_cast<std::uint32_t>(step)), .weight_decay = 0.05f});
    if (!result.ok()) return nullptr;
    on_step(step, result.loss);
  }
  return std::make_unique<Base::Parameters>(trainer->parameters());
}

/// Sums over the features of recordings, for a head in closed form that does not forget them.
inline std::vector<HeadInClosedForm> factory_of(const Base::Parameters& base,
                                                const std::vector<const Recording*>& recordings) {
  using BaseFront = FrontOf<attune::EncoderLayer<encoder(true)>>;
  const auto scratch = std::make_unique<BaseFront::InferenceScratch>();
  std::vector<HeadInClosedForm> factory(1);
  Example example;
  Features features;
  for (const Recording* recording : recordings) {
    load(*recording, example);
    attune::infer<BaseFront>(base.layer<0>(), example.tokens, features, *scratch, example.padding);
    static_cast<void>(factory[0].add(features, recording->digit));
  }
  return factory;
}

/// Features of recordings in 8 bits, to probe what a head has forgotten.
inline std::vector<PackedFeatures> probe_of(const Base::Parameters& base,
                                            const std::vector<Recording>& recordings) {
  using BaseFront = FrontOf<attune::EncoderLayer<encoder(true)>>;
  const auto scratch = std::make_unique<BaseFront::InferenceScratch>();
  std::vector<PackedFeatures> probe;
  Example example;
  Features features;
  for (const Recording& recording : recordings) {
    if (recording.use != Use::kOthersTakes) continue;
    load(recording, example);
    attune::infer<BaseFront>(base.layer<0>(), example.tokens, features, *scratch, example.padding);
    probe.push_back({.digit = recording.digit});
    probe.back().pack(features);
  }
  return probe;
}

}  // namespace personalise
