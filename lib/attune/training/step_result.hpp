// What a step answers, and what it asks of a batch's gradient before anything changes.
#pragma once

#include <limits>

#include <attune/core/gradients.hpp>
#include <attune/core/status.hpp>
#include <attune/training/optimizer.hpp>

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

namespace detail {

/// What an optimiser step asks of what was added up over a batch, before anything changes.
template <class Scalar>
struct BatchGradient {
  Status status;
  Scalar scale;   // of loss and gradients in a mean
  Scalar norm;    // before clipping
  Scalar factor;  // of clipping

  template <class Loss, class Optimizer, class Gradients, class Clipping>
  ATTUNE_INLINE static BatchGradient of(const Gradients& gradients,
                                        const typename Optimizer::Options& options, const Clipping& clipping,
                                        const Scalar& loss, const Scalar& normaliser) {
    BatchGradient batch{};
    if (batch.status = clipping.check(); batch.status != Status::kOk) return batch;
    const Scalar norm_of_sum = clipping.template norm<Scalar>(gradients);
    batch.scale = Loss::kMeanOverBatch ? 1 / normaliser : Scalar(1);
    batch.norm = norm_of_sum * batch.scale;
    batch.factor = clipping.factor(batch.norm);
    if (Loss::kMeanOverBatch && !(normaliser > 0)) {
      batch.status = Status::kNoTargets;
    } else if (!finite(loss) || !(batch.norm * batch.factor <= kLargestGradient<Scalar>)) {
      batch.status = Status::kNotFinite;
    } else {
      batch.status = Optimizer::check(options);
    }
    return batch;
  }
};

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
