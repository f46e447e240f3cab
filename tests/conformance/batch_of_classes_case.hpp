// A Linear trained by the Trainer on one batch of sequences, with classes as targets: losses, norms of the
// gradient, and the parameters at the end.
#pragma once

#include <algorithm>
#include <span>

#include "report.hpp"

namespace conformance {

template <class Optimizer>
struct BatchOfClassesData {
  using Scalar = typename Optimizer::Scalar;
  typename Optimizer::Options options;
  double max_norm;  // 0: no clipping
  int steps;
  const Scalar* parameters;               // weight [d_in, classes], then bias
  const Scalar* inputs;                   // [batch, rows, d_in]
  const int* targets;                     // [batch, rows]
  const Scalar* class_weights = nullptr;  // [classes]
};

template <class Loss, class Scalar>
Loss loss_with(const Scalar* class_weights) {
  if constexpr (requires(Loss loss) { loss.class_weights; }) {
    decltype(Loss::class_weights) weights;
    std::copy_n(class_weights, weights.size, weights.values);
    return Loss(weights);
  } else {
    return Loss{};
  }
}

template <attune::LinearShape shape, class Loss, class Optimizer, int batch>
void batch_of_classes_case(const BatchOfClassesData<Optimizer>& data) {
  using Layer = attune::Linear<shape, typename Optimizer::Scalar>;
  using Trainer = attune::Trainer<Layer, Loss, Optimizer, batch>;
  static Trainer trainer;
  static typename Layer::Parameters parameters;
  const Loss loss = loss_with<Loss>(data.class_weights);
  const typename Trainer::BatchInputView inputs(data.inputs);
  const std::span<const int, batch * shape.rows> targets(data.targets, batch * shape.rows);

  load(parameters, data.parameters);
  trainer.load(parameters);
  for (int step = 0; step < data.steps; ++step) {
    const attune::NoMask no_mask;
    const auto result =
        data.max_norm > 0
            ? trainer.step(inputs, targets, data.options,
                           attune::GradientClipping{static_cast<float>(data.max_norm)}, no_mask, loss)
            : trainer.step(inputs, targets, data.options, attune::NoClipping{}, no_mask, loss);
    expect_ok(result.status);
    report(&result.loss, 1, "losses");
    report(&result.gradient_norm, 1, "norms");
  }
  report_set(trainer.parameters(), "");
}

}  // namespace conformance
