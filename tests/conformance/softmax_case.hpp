// Softmax over rows; its gradient where the case has one.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct SoftmaxData {
  const Scalar* input;
  const Scalar* grad_out = nullptr;
};

template <int rows, int cols, class Scalar>
void softmax_case(const SoftmaxData<Scalar>& data) {
  using Matrix = attune::Tensor<Scalar, rows, cols>;
  using View = attune::MatrixView<const Scalar, rows, cols>;
  static Matrix y, dx;
  attune::Softmax<rows, cols, Scalar>::forward(View(data.input), y);
  report(y, "out");
  if (data.grad_out == nullptr) return;
  attune::Softmax<rows, cols, Scalar>::backward(y, View(data.grad_out), dx);
  report(dx, "grad.input");
}

}  // namespace conformance
