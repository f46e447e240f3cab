// Squared error or Huber: the loss and its gradient.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct SquaredErrorData {
  const Scalar* input;
  const Scalar* target;
};

template <class Loss, int rows, int cols, class Scalar>
void squared_error_case(const SquaredErrorData<Scalar>& data) {
  using View = attune::MatrixView<const Scalar, rows, cols>;
  static attune::Tensor<Scalar, rows, cols> dy;
  const Scalar loss = Loss::forward(View(data.input), View(data.target), dy);
  report(&loss, 1, "loss");
  report(dy, "grad.input");
}

}  // namespace conformance
