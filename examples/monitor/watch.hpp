// Notices states of the machine that nobody has told of: windows whose features are far from those of all
// known conditions. It learns from inspected windows what is usual, and how far away they are.
#pragma once

#include <attune/attune.hpp>

#include "adapted.hpp"

namespace monitor {

/// From a window to the features of the factory's classifier, which do not change in use.
using Front = attune::Sequential<attune::Linear<attune::LinearShape{kSamples, kAxes, kWidth}>,
                                 attune::SinusoidalPositions<attune::PositionShape{kSamples, kWidth}>,
                                 attune::BiasesAndNorms<Encoder, kEncoderInFlash>,
                                 attune::Pooling<attune::PoolingShape{kSamples, kWidth}>>;
using Head = attune::Linear<attune::LinearShape{1, kWidth, kConditions}>;
using Features = Front::Output;
inline constexpr Front::Parameters kFrontInFlash = [] {
  Front::Parameters parameters{};
  parameters.layer<0>() = kFactory.layer<0>();
  parameters.layer<2>() = kFactory.layer<2>();
  return parameters;
}();

/// A plain value, which a store saves.
class Watch {
 public:
  static constexpr std::uint32_t kFingerprint = 1;

  /// Whether a window is an anomaly; windows come in order. The one to be inspected is kept.
  bool notices(const Features& features, bool to_be_inspected) {
    const float away = distance_(features);
    score_ = score_ > 0 && score_ < 1e30f ? (score_ + away) / 2 : away;
    if (to_be_inspected) inspected_ = features, inspected_score_ = score_;
    return watches() && score_ > threshold_;
  }
  /// Whether there is a threshold.
  [[nodiscard]] bool watches() const { return thresholds_ > 0; }
  /// The condition of the inspected window, which is usual.
  attune::Status learn(int condition) {
    attune::Status status = sums_.add(inspected_, condition);
    const int count = sums_.examples();
    if (status == attune::Status::kOk && count >= kMin && count % kFit == 0) status = distance_.fit(sums_);
    if (status != attune::Status::kOk || !(inspected_score_ < 1e30f)) return status;
    status = usual_.add(inspected_score_);
    if (usual_.count() == kScores) {
      threshold_ = usual_.value();
      ++thresholds_;
      usual_.clear();
    }
    return status;
  }

 private:
  static constexpr int kMin = 40, kFit = 8;     // inspections before the first distance, and between two
  static constexpr std::uint32_t kScores = 64;  // of a threshold, since the machine changes

  attune::ClosedFormHead<kWidth, kConditions> sums_{};
  attune::FeatureDistance<kWidth, kConditions> distance_{};
  attune::Quantile<attune::QuantileOptions{.share = 0.95}> usual_{};
  Features inspected_{};
  float inspected_score_{}, score_{}, threshold_{};
  std::uint32_t thresholds_{};
};

}  // namespace monitor
