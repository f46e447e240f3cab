// The end of a batch: checks, scales and clips its gradients before anything changes.
#pragma once

#include <attune/core/gradients.hpp>
#include <attune/core/status.hpp>
#include <attune/kernels/checked.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The gradient of a batch as the optimizer applies it: `scale · factor` times the sum over its sequences.
template <class Scalar>
struct BatchGradient {
  Status status;
  Scalar scale;   // for loss and gradients of a mean
  Scalar norm;    // before clipping
  Scalar factor;  // clipping factor

  /// Of a sum over sequences with this norm.
  template <class Loss, class Optimizer>
  ATTUNE_INLINE static BatchGradient of(Scalar norm_of_sum, const typename Optimizer::Options& options,
                                        const auto& clipping, const LossSum<Scalar>& sum) {
    ATTUNE_ASSERT_ROUNDING();
    BatchGradient batch{};
    if (batch.status = clipping.check(); batch.status != Status::kOk) return batch;
    batch.scale = Loss::kMeanOverBatch ? 1 / sum.normalizer : Scalar(1);
    batch.norm = norm_of_sum * batch.scale;
    batch.factor = clipping.factor(batch.norm);
    if (Loss::kMeanOverBatch && !(sum.normalizer > 0)) {
      batch.status = Status::kNoTargets;
    } else if (!finite(sum.sum) || !(batch.norm * batch.factor <= kLargestGradient<Scalar>)) {
      batch.status = Status::kNotFinite;
    } else {
      batch.status = Optimizer::check(options);
    }
    return batch;
  }
};

/// An optimizer step that has begun: its result and, if that is ok, the coefficients to update each
/// parameter.
template <class Optimizer>
struct BatchUpdate {
  StepResult<typename Optimizer::Scalar> result;
  typename Optimizer::Coefficients coefficients;
};

/// Ends a batch: checks the gradients by their norm (of a sum over its sequences), scales and clips them, and
/// begins the optimizer's step. The caller then updates the parameters and calls count_step(). Nothing
/// changes unless the result is ok.
template <class Loss, class Model, class Optimizer, TrainingPrecision precision, class Scalar>
ATTUNE_INLINE BatchUpdate<Optimizer> begin_update(TrainingState<Model, Optimizer, precision>& state,
                                                  std::type_identity_t<Scalar> norm,
                                                  const LossSum<Scalar>& sum,
                                                  const typename Optimizer::Options& options,
                                                  const auto& clipping) {
  const auto gradient = BatchGradient<Scalar>::template of<Loss, Optimizer>(norm, options, clipping, sum);
  if (gradient.status != Status::kOk) return {StepResult<Scalar>::refused(gradient.status), {}};
  return {{sum.sum * gradient.scale, Status::kOk, gradient.norm},
          Optimizer::advance(state.moments, options, gradient.scale * gradient.factor)};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
