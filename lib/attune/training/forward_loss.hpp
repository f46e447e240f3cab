// Forward and loss of one sequence, shared by all trainers.
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
/// refused or the loss is not finite.
template <class Model, class Scalar, class OnOutput = Unused>
ATTUNE_INLINE Status forward_loss(const auto& context, const auto& parameters,
                                  ConstView<typename Model::Input> x, View<typename Model::Output> output,
                                  auto& tape, auto& scratch, const auto& target, const auto& loss,
                                  LossSum<Scalar>& sum, const OnOutput& on_output = {}) {
  using Output = typename Model::Output;
  const Status status = context.inside([&]() ATTUNE_INLINE_LAMBDA {
    return forward_status<Model>(context, parameters, x, output, tape, scratch);
  });
  if (status != Status::kOk) return status;
  return context.answer([&]() ATTUNE_INLINE_LAMBDA {
    ATTUNE_ASSERT_ROUNDING();
    clear_behind(context, output);
    on_output(ConstView<Output>(output));
    sum = loss.sum(ConstView<Output>(output), target, output);
    return sum.status == Status::kOk && !finite(sum.sum) ? Status::kNotFinite : sum.status;
  });
}

}  // namespace ATTUNE_NAMESPACE::detail
