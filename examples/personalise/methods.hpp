// What a device trains of the classifier, and how fast. What it does not train stays in flash.
#pragma once

#include <string_view>

#include "model.hpp"

namespace personalise {

enum class Method {
  kNothing,
  kMeans,   // no training: the nearest mean of the takes' features
  kHead,    // the last layer
  kCached,  // the last layer, on features that are computed once a take
  kBiases,  // biases and norms, and the last layer
  kEverything,
};
inline constexpr std::string_view kMethodNames[] = {"nothing", "means",  "head",
                                                    "cached",  "biases", "everything"};

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
struct Trained<Method::kEverything, kFront> {
  using Model = Base;
};

/// Which was best for own recordings of other speakers than the one that is new, of rates a factor of 2
/// apart.
constexpr float learning_rate(Method method) {
  switch (method) {
    case Method::kBiases:
      return 2e-2f;
    case Method::kEverything:
      return 2e-3f;
    default:
      return 4e-2f;
  }
}
/// How many recordings of other speakers a step rehearses.
constexpr int rehearsed(Method) { return 0; }

}  // namespace personalise
