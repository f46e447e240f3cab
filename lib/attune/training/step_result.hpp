// The result of a step.
#pragma once

#include <limits>

#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// What a step did. `status` says whether parameters were changed, and if not, why.
template <class Scalar>
struct [[nodiscard]] StepResult {
  Scalar loss;  // of the batch, before the step; NaN where the step was refused
  Status status;
  Scalar gradient_norm;  // √Σg² of the batch's gradient, before clipping; NaN where the step was refused
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }

  /// Of a step that was refused: loss and norm are NaN.
  [[nodiscard]] static constexpr StepResult refused(Status status) {
    constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
    return {kNan, status, kNan};
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
