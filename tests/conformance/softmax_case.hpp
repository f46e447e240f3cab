// Softmax or its logarithm over rows; its gradient where the case has one.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct SoftmaxData {
  const Scalar* input;
  const Scalar* grad_out = nullptr;
};

template <class Layer, class Scalar>
void softmax_case(const SoftmaxData<Scalar>& data) {
  using View = attune::MatrixView<const Scalar, Layer::Input::rows, Layer::Input::cols>;
  static typename Layer::Output y, dx;
  Layer::forward(View(data.input), y);
  report(y, "out");
  if (data.grad_out == nullptr) return;
  Layer::backward(y, View(data.grad_out), dx);
  report(dx, "grad.input");
}

}  // namespace conformance
