// When to learn: a trigger starts a session of training when a score has risen, and ends it when the score
// has come back. Nothing is learned while nothing changed.
//
//   S⁺ ← max(0, S⁺ + x − (expected + slack))      starts at S⁺ > start
//   S⁻ ← max(0, S⁻ + (expected + slack) − x)      ends at S⁻ > stop
//
// These are cumulative sums (CUSUM; Page, "Continuous Inspection Schemes", 1954). The score x is one number a
// step, larger when the model is worse: the loss of a labeled example, or an anomaly score without labels.
//
//   static attune::DriftTrigger trigger;               // a plain value: save it beside the training state
//   status = trigger.add(loss, {.expected = 0.1f});
//   if (trigger.learning()) …                          // train
#pragma once

#include <cstdint>
#include <initializer_list>

#include <attune/core/status.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of DriftTrigger, in units of the score.
struct DriftOptions {
  float expected = 0;   // mean score while nothing changed
  float slack = 0.25f;  // larger means that are no change, at least 0: half of the change to be noticed
  float start = 4;      // sum that starts a session, at least 0: larger is later, with fewer false alarms
  float stop = 4;       // sum that ends a session, at least 0
};

/// Tells from scores when to train. Zero-initialized, it does not learn.
class DriftTrigger {
 public:
  /// Takes the score of a step. With nothing changed, returns kNotFinite for a score that is infinite or NaN,
  /// and kInvalidEpsilon for options that are out of range, infinite or NaN.
  Status add(float score, const DriftOptions& options) {
    for (const float option : {options.slack, options.start, options.stop}) {
      if (!(option >= 0 && option - option == 0)) return Status::kInvalidEpsilon;
    }
    if (options.expected - options.expected != 0) return Status::kInvalidEpsilon;
    const float excess = score - (options.expected + options.slack);
    if (excess - excess != 0) return Status::kNotFinite;
    float& sum = learning_ ? down_ : up_;
    sum = sum + (learning_ ? -excess : excess);
    if (!(sum > 0)) sum = 0;
    if (sum > (learning_ ? options.stop : options.start)) {
      learning_ = !learning_;
      sessions_ += learning_;
      up_ = down_ = 0;
    }
    return Status::kOk;
  }
  /// Whether a session is under way.
  [[nodiscard]] bool learning() const { return learning_ != 0; }
  /// The number of sessions started.
  [[nodiscard]] std::uint32_t sessions() const { return sessions_; }
  /// Ends a session, and forgets all scores.
  void clear() { *this = {}; }

 private:
  float up_ = 0, down_ = 0;
  std::uint32_t learning_ = 0, sessions_ = 0;
};

}  // namespace ATTUNE_NAMESPACE
