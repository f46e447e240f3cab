// Forward and loss of one sequence, and predictions, shared by trainers.
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/checked.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Ignores outputs.
struct Unused {
  void operator()(const auto&) const {}
};

/// Writes y, then dL/dy, to `output`, and the loss to `sum`. Rows beyond the valid length become zero.
/// `on_output` is called with y before the gradient overwrites it. Returns an error if ids or targets are
/// refused or the loss is not finite. `memory` is a tape and a scratch, or the scratch of inference.
template <class Model, class Scalar>
ATTUNE_INLINE Status forward_loss(const auto& context, const auto& parameters,
                                  ConstView<typename Model::Input> x, View<typename Model::Output> output,
                                  const auto& target, const auto& loss, LossSum<Scalar>& sum,
                                  const auto& on_output, auto&... memory) {
  using Output = typename Model::Output;
  const Status status = context.inside([&]() ATTUNE_INLINE_LAMBDA {
    return forward_status<Model>(context, parameters, x, output, memory...);
  });
  if (status != Status::kOk) return status;
  return context.answer([&]() ATTUNE_INLINE_LAMBDA {
    ATTUNE_ASSERT_ROUNDING();
    clear_behind(context.to_completion(), output);
    on_output(ConstView<Output>(output));
    sum = loss.sum(ConstView<Output>(output), target, output);
    return sum.status == Status::kOk && !finite(sum.sum) ? Status::kNotFinite : sum.status;
  });
}

/// y for x with the parameters of a training, without a tape. Returns a Status as Trainer::predict.
template <class Model, class Mask>
Status predict_without_tape(const auto& state, ConstView<typename Model::Input> x,
                            View<typename Model::Output> y, const Mask& mask,
                            typename Model::InferenceScratch& scratch) {
  if (const Status status = state.ready(); status != Status::kOk) return status;
  const Status status = forward_pass<Model>(context_for<Model>(mask), state.parameters, x, y, scratch);
  return status_of_output<Model>(status, mask, y);
}

}  // namespace ATTUNE_NAMESPACE::detail
