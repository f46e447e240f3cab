// Any layer with one input, or of ids: output, and where the case has an output gradient, every gradient.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Layer, class Scalar = typename Layer::Scalar>
struct LayerData {
  const std::conditional_t<attune::detail::kTakesIds<Layer>, int, Scalar>* input;
  const Scalar* parameters = nullptr;  // tensor after tensor; none where the layer has none
  const Scalar* grad_out = nullptr;
};

template <class Layer>
void layer_case(const LayerData<Layer>& data) {
  static check::LayerMemory<Layer> memory;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = memory;
  static typename Layer::Input dx;
  const attune::ConstView<typename Layer::Input> x(data.input);

  load(parameters, data.parameters);
  static_cast<void>(Layer::forward(parameters, x, y, inference_scratch));
  report(y, "out_inference");
  static_cast<void>(Layer::forward(parameters, x, y, tape, scratch));
  report(y, "out");
  if constexpr (requires(typename Layer::Tape kept) { kept.inverse_deviation; }) {
    for (int i = 0; i < Layer::Input::rows; ++i) {
      const typename Layer::Scalar mean = x(i, 0) + tape.mean_offset.values[i];
      report(&mean, 1, "mean");
    }
    report(tape.inverse_deviation, "inverse_deviation");
  }
  if (data.grad_out == nullptr) return;
  attune::set_zero(gradients);
  const attune::ConstView<typename Layer::Output> dy(data.grad_out);
  if constexpr (attune::detail::kTakesIds<Layer>) {
    Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
  } else {
    Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
    report(dx, "grad.input");
  }
  report_set(gradients, "grad.");
}

}  // namespace conformance
