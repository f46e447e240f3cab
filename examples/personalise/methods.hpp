// What a device trains of the classifier, and how fast. What it does not train stays in flash.
#pragma once

#include <string_view>

#include "model.hpp"

namespace personalise {

enum class Method {
  kBaseline,
  kNearestMean,          // no training: the nearest mean of the takes' features
  kClosedForm,           // no training: the last layer in closed form, close to the base's
  kClosedFormUnlabeled,  // the same without labels, or with a few
  kForwardOnly,          // as kLora, without backward
  kHead,                 // the last layer
  kCached,               // the last layer, on features that are computed once a take
  kBiases,               // biases and norms, and the last layer
  kBiasesUnlabeled,      // the same without labels, by InfoMax
  kLora,              // factors of rank 4 beside the weights of queries and values (LoRA), and the last layer
  kLoraUnlabeled,     // the same without labels, by InfoMax
  kLoraInt8Tape,      // as kLora, with a tape in 8 bits, so that nothing is computed twice
  kLoraLowPrecision,  // as kLora, with factors in 16 bits and moments in 8
  kLoraSgdBf16,       // as kLora after each take, with factors in 16 bits, neither moments nor gradients
  kLoraReplayed,      // as kLora, while takes of the factory's speakers are replayed (replayed.hpp)
  kLoraRobustLoss,    // as kLora, with a loss for labels of which some are wrong
  kLoraFilteredLabels,  // as kLora, from takes whose label the base finds possible
  kGuarded,             // both, with takes held out, and a probe of the others' takes: the best is kept
  kLoraAll,             // the same beside every weight
  kRehearsed,           // as kLoraAll, while recordings of the other speakers are rehearsed
  kFull,
  kFullLowPrecision,  // everything after each take, with weights in 16 bits, moments and tape in 8
};
inline constexpr std::string_view kMethodNames[] = {"baseline",
                                                    "nearest_mean",
                                                    "closed_form",
                                                    "closed_form_unlabeled",
                                                    "forward_only",
                                                    "head",
                                                    "cached",
                                                    "biases_and_norms",
                                                    "biases_and_norms_unlabeled",
                                                    "lora",
                                                    "lora_unlabeled",
                                                    "lora_int8_tape",
                                                    "lora_low_precision",
                                                    "lora_sgd_bf16",
                                                    "lora_replayed",
                                                    "lora_robust_loss",
                                                    "lora_filtered_labels",
                                                    "guarded",
                                                    "lora_all",
                                                    "rehearsed",
                                                    "full",
                                                    "full_low_precision"};

consteval Method method_named(std::string_view name) {
  int method = 0;
  while (kMethodNames[method] != name) ++method;  // which ends at compile time
  return static_cast<Method>(method);
}

/// What a Trainer trains: a part of the model, around the front's constants.
template <Method method, const auto& kFront>
struct Trained {
  using Model = attune::Sequential<attune::Frozen<Front, kFront>, Head>;
};
template <const auto& kFront>
struct Trained<Method::kBiases, kFront> {
  using Model = attune::Sequential<attune::BiasesAndNorms<Front, kFront>, Head>;
};
template <const auto& kFront>
struct Trained<Method::kLora, kFront> {
  static constexpr attune::LowRank kFactors{.rank = 4,
                                            .roles = attune::Role::kQueries | attune::Role::kValues};
  using Model = attune::Sequential<attune::Adapted<Front, kFront, kFactors>, Head>;
};
template <const auto& kFront>
struct Trained<Method::kBiasesUnlabeled, kFront> : Trained<Method::kBiases, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraUnlabeled, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraInt8Tape, kFront> {
  static constexpr attune::LowRank kFactors = Trained<Method::kLora, kFront>::kFactors;
  using Model = attune::Sequential<attune::Adapted<PackedFront, kFront, kFactors>, Head>;
};
template <const auto& kFront>
struct Trained<Method::kLoraLowPrecision, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraSgdBf16, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kForwardOnly, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraReplayed, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraRobustLoss, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraFilteredLabels, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kGuarded, kFront> : Trained<Method::kLora, kFront> {};
template <const auto& kFront>
struct Trained<Method::kLoraAll, kFront> {
  static constexpr attune::LowRank kFactors{.rank = 4, .roles = attune::Role::kEverything};
  using Model = attune::Sequential<attune::Adapted<Front, kFront, kFactors>, Head>;
};
template <const auto& kFront>
struct Trained<Method::kRehearsed, kFront> : Trained<Method::kLoraAll, kFront> {};
template <const auto& kFront>
struct Trained<Method::kFull, kFront> {
  using Model = Whole;
};
template <const auto& kFront>
struct Trained<Method::kFullLowPrecision, kFront> {
  using Model = attune::Sequential<PackedFront, Head>;
};
/// Whether it trains by InfoMax, on all takes in each step.
constexpr bool maximizes_information(Method method) {
  return method == Method::kBiasesUnlabeled || method == Method::kLoraUnlabeled;
}
/// Whether the optimizer steps after each take, instead of after ten.
constexpr bool steps_by_take(Method method) {
  return method == Method::kLoraSgdBf16 || method == Method::kFullLowPrecision;
}

/// Of rates a factor of about 2 apart the best for new speakers' recordings (examples/README.md).
constexpr float learning_rate(Method method) {
  if (method == Method::kLoraSgdBf16) return 0.1f;
  if (method == Method::kBiasesUnlabeled) return 2e-3f;
  if (method == Method::kLoraUnlabeled) return 4e-3f;
  if (Method::kBiases <= method && method <= Method::kGuarded) return 2e-2f;
  switch (method) {
    case Method::kLoraAll:
      return 1e-2f;
    case Method::kRehearsed:
      return 5e-3f;
    case Method::kFull:
      return 2e-3f;
    case Method::kFullLowPrecision:
      return 2.5e-4f;
    case Method::kForwardOnly:
      return 4e-3f;
    default:
      return 4e-2f;
  }
}
/// Products of floats, or of 8-bit integers: --precision. The base is in 8 bits in both.
#ifndef ATTUNE_EXAMPLE_PRECISION_INT8
#define ATTUNE_EXAMPLE_PRECISION_INT8 0
#endif
inline constexpr bool kInIntegers = ATTUNE_EXAMPLE_PRECISION_INT8;
/// A constant base in integers is multiplied in integers; trained weights need integers of their own.
template <Method method>
struct PlanOf {
  using InFloats = std::conditional_t<steps_by_take(method), attune::UpdateInBackward, attune::BySequence>;
  static constexpr bool kTrainsWeights = method == Method::kFull || method == Method::kFullLowPrecision;
  using type =
      std::conditional_t<kInIntegers && kTrainsWeights, attune::Int8TrainingWith<InFloats>, InFloats>;
};
template <Method method>
using Plan = typename PlanOf<method>::type;
/// Everything has so many moments that they take a third of the RAM as 32-bit floats; in 16 bits it learns as
/// well (examples/README.md).
template <Method method>
struct OptimizerOf {
  using type = attune::AdamW;
};
template <>
struct OptimizerOf<Method::kFull> {
  using type = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16}>;
};
template <>
struct OptimizerOf<Method::kFullLowPrecision> {
  using type = attune::StochasticBfloat16<
      attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}>>;
};
template <>
struct OptimizerOf<Method::kLoraLowPrecision> : OptimizerOf<Method::kFullLowPrecision> {};
template <>
struct OptimizerOf<Method::kLoraSgdBf16> {
  using type = attune::StochasticBfloat16<attune::Sgd<>>;
};
template <Method method>
using Optimizer = typename OptimizerOf<method>::type;
/// Bytes that training may take beside stack and code.
constexpr std::size_t most_ram(Method method) {
  switch (method) {
    case Method::kBiases:
    case Method::kLora:
    case Method::kLoraReplayed:
      return std::size_t{64} * 1024;
    case Method::kLoraLowPrecision:
      return std::size_t{50} * 1024;
    case Method::kLoraSgdBf16:
      return std::size_t{44} * 1024;
    case Method::kFullLowPrecision:
      return std::size_t{kInIntegers ? 180 : 150} * 1024;
    case Method::kFull:
      return std::size_t{330} * 1024;
    default:
      return std::size_t{128} * 1024;
  }
}
/// Whether takes whose label the base finds impossible are left out, and labels are doubted.
constexpr bool filters(Method method) {
  return method == Method::kLoraFilteredLabels || method == Method::kGuarded;
}
constexpr bool doubts(Method method) {
  return method == Method::kLoraRobustLoss || method == Method::kGuarded;
}
template <Method method>
using LossOf =
    attune::CrossEntropy<attune::CrossEntropyOptions{.noise_exponent = doubts(method) ? 0.7 : 0.0}>;
/// How many recordings of other speakers a step rehearses.
constexpr int rehearsed(Method method) { return method == Method::kRehearsed ? kDigits : 0; }
/// How many takes a step may replay from a memory in flash; Recordings says how many it does.
constexpr int most_replayed(Method method) { return method == Method::kLoraReplayed ? 20 : 0; }

}  // namespace personalise
