// How the classifier is trained, wherever it is. Rates, decay, smoothing and moves are those that were best
// on blocks of 144 images, each left out of training in turn.
#pragma once

#include <algorithm>

#include <arguments.hpp>
#include <instructions.hpp>

#include "../terminal.hpp"
#include "images.hpp"

namespace digits {

inline constexpr int kBatch = 32;
inline constexpr int kSteps = 1800;  // 45 epochs
inline constexpr attune::CosineSchedule kLearningRate{
    .peak = kSmall ? 0.01f : 0.008f, .total_steps = kSteps, .warmup_steps = kSteps / 20};
inline constexpr float kWeightDecay = kSmall ? 0.01f : 0.1f;

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
/// Products of floats, or of integers of 8 bits; weights in floats, or in bf16: --precision.
#if ATTUNE_EXAMPLE_PRECISION_INT8_BF16
#define ATTUNE_EXAMPLE_PRECISION_INT8 1
#define ATTUNE_EXAMPLE_PRECISION_BF16 1
#endif
#if ATTUNE_EXAMPLE_PLACED
// --memory: each part of the trainer is an object of its own. In slow memory stand the gradients and the
// trainer, which has parameters and moments.
inline attune::SharedBuffers<Model> buffers;
inline attune::WorkingWeights<Model> weights;
[[gnu::section(".psram.gradients")]] inline attune::PlacedGradients<Model> gradients;
using Plan = attune::WeightsIn<weights, attune::GradientsIn<gradients, attune::InSharedBuffers<buffers>>>;
inline constexpr std::size_t kPlaced = sizeof buffers + sizeof weights + sizeof gradients;
#elif ATTUNE_EXAMPLE_PRECISION_INT8
using Plan = attune::Int8Training;
inline constexpr std::size_t kPlaced = 0;
#else
using Plan = attune::BySequence;
inline constexpr std::size_t kPlaced = 0;
#endif
#if ATTUNE_EXAMPLE_PRECISION_BF16
using Optimizer = attune::StochasticBfloat16<attune::AdamW>;
#else
using Optimizer = attune::AdamW;
#endif
inline constexpr bool kInt8 = std::is_same_v<Plan, attune::Int8Training>,
                      kBf16 = !std::is_same_v<Optimizer, attune::AdamW>;
inline constexpr const char* kPrecision = kInt8 ? (kBf16 ? "int8_bf16" : "int8") : kBf16 ? "bf16" : "float";
using Trainer = attune::Trainer<Model, Loss, Optimizer, kBatch, Plan>;
inline constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() + kPlaced <= (kPlaced > 0 ? 512 : kSmall ? 56 : kInt8 ? 328 : 320) * 1024);  // the RAM contract

// Where initial parameters and the order of the images come from.
inline attune::Rng rng_of_parameters(std::uint64_t seed) { return attune::Rng(2 * seed - 1); }
inline attune::Rng rng_of_images(std::uint64_t seed) { return attune::Rng(2 * seed); }

inline attune::AdamW::Options options(int step, const attune::CosineSchedule& learning_rate = kLearningRate) {
  return {.learning_rate = learning_rate(static_cast<std::uint32_t>(step)), .weight_decay = kWeightDecay};
}
/// For `steps` steps more of what is trained already.
inline attune::CosineSchedule further_learning_rate(int steps) {
  const auto total = static_cast<std::uint32_t>(steps);
  return {.peak = kLearningRate.peak / 10, .total_steps = total, .warmup_steps = total / 20};
}

/// How many images of the training part, the last ones, are not trained on.
inline int held_out(int unless_told) {
  return std::clamp(port::argument("--validation", unless_told), 0, kTrainImages - 2);
}

/// Takes step number `step` with the next images in the order; `example` is the place of one after the other.
inline Trainer::Result take_step(Trainer& trainer, Example& example, attune::Rng& rng, Shuffle& order,
                                 int step, const attune::CosineSchedule& learning_rate = kLearningRate) {
  for (int i = 0; i < kBatch; ++i) {
    draw(rng, order, example);
    const auto added = trainer.accumulate(example.image, example.label);
    if (!added.ok()) return Trainer::Result::refused(added.status);
  }
  return trainer.update(options(step, learning_rate));
}

/// RAM by class on a board.
inline void print_memory() {
  terminal::print_memory("training", kMemory);
  terminal::print_memory("inference alone, parameters included", attune::inference_memory<Model>());
}

}  // namespace digits
