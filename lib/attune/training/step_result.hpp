// The result of a step.
#pragma once

#include <limits>

#include <attune/core/status.hpp>
#include <attune/kernels/matrix_view.hpp>

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

namespace detail {

/// A number in place of options is a compile error.
template <class Scalar, PlainNumber Number>
constexpr StepResult<Scalar> number_for_options() {
  static_assert(Holds<!PlainNumber<Number>>, "attune: options have names, such as {.learning_rate = 1e-3f}");
  return {};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
