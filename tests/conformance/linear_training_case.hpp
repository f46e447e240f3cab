// A Linear trained by the Trainer: the parameters at the end.
#pragma once

#include "report.hpp"

namespace conformance {

/// L = Σ y, whatever the target.
struct SumOfOutputs {
  static constexpr bool kMeanOverBatch = false;

  template <class Output, class Target, class Gradient>
  static attune::LossSum<typename Gradient::Scalar> sum(const Output& y, const Target&, const Gradient& dy) {
    typename Gradient::Scalar total = 0;
    for (int i = 0; i < y.rows * y.cols; ++i) {
      total += y.data[i];
      dy.data[i] = 1;
    }
    return {total};
  }
};

template <class Optimizer>
struct LinearTrainingData {
  using Scalar = typename Optimizer::Scalar;
  typename Optimizer::Options options;
  int steps;
  int batches;               // taken in turn, one a step
  const Scalar* parameters;  // weight [d_in, d_out], then bias
  const Scalar* inputs;      // [batches, rows, d_in]
  const Scalar* targets;     // [batches, rows, d_out]
};

template <attune::LinearShape shape, class Loss, class Optimizer>
void linear_training_case(const LinearTrainingData<Optimizer>& data) {
  using Layer = attune::Linear<shape, typename Optimizer::Scalar>;
  using Trainer = attune::Trainer<Layer, Loss, Optimizer>;
  static Trainer trainer;
  static typename Layer::Parameters parameters;

  load(parameters, data.parameters);
  trainer.load(parameters);
  for (int step = 0; step < data.steps; ++step) {
    const int batch = step % data.batches;
    const typename Trainer::BatchInputView inputs(data.inputs + batch * Layer::Input::size);
    const typename Trainer::BatchTargetView targets(data.targets + batch * Layer::Output::size);
    expect_ok(trainer.step(inputs, targets, data.options).status);
  }
  report_set(trainer.parameters(), "");
}

}  // namespace conformance
