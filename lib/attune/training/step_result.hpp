// The result of a step. Includes little: attune/training/model_unit.hpp stands on it.
#pragma once

#include <limits>

#include <attune/core/status.hpp>

namespace ATTUNE_NAMESPACE {

/// The result of a step. `status` says whether parameters changed and, if not, why.
template <class Scalar>
struct [[nodiscard]] StepResult {
  Scalar loss;  // of the batch, before the step; NaN if the step was refused
  Status status;
  Scalar gradient_norm;  // √Σg² of the batch's gradient, before clipping; NaN if the step was refused
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }

  /// The result of a refused step: loss and norm are NaN.
  [[nodiscard]] static constexpr StepResult refused(Status status) {
    constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
    return {kNan, status, kNan};
  }
};

}  // namespace ATTUNE_NAMESPACE
