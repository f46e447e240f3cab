// How the classifier is trained, wherever it is.
#pragma once

#include "model.hpp"

namespace digits {

inline constexpr int kBatch = 32;
inline constexpr int kSteps = 1800;  // 40 epochs
inline constexpr attune::CosineSchedule kLearningRate{
    .peak = kSmall ? 0.01f : 0.003f, .total_steps = kSteps, .warmup_steps = kSteps / 20};

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
using Trainer = attune::Trainer<Model, Loss, attune::AdamW, kBatch>;
inline constexpr attune::MemoryReport kMemory = Trainer::memory(attune::Feeding::kOneByOne);
static_assert(kMemory.total() <= (kSmall ? 56 : 320) * 1024);  // the RAM contract, checked by the compiler

// Where initial parameters and the order of the images come from.
inline attune::Rng rng_of_parameters(std::uint64_t seed) { return attune::Rng(2 * seed - 1); }
inline attune::Rng rng_of_images(std::uint64_t seed) { return attune::Rng(2 * seed); }

}  // namespace digits
