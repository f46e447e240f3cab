// Linear: output and gradients.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct LinearData {
  const Scalar* parameters;  // weight [d_in, d_out], then bias
  const Scalar* input;
  const Scalar* grad_out;
};

template <attune::LinearShape shape, class Scalar>
void linear_case(const LinearData<Scalar>& data) {
  using Layer = attune::Linear<shape, Scalar>;
  static typename Layer::Parameters parameters, gradients;
  static typename Layer::Tape tape;
  static typename Layer::Scratch scratch;
  static typename Layer::Input dx;
  static typename Layer::Output y;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  const attune::ConstView<typename Layer::Input> x(data.input);
  const attune::ConstView<typename Layer::Output> dy(data.grad_out);
  Layer::forward(parameters, x, y, tape, scratch);
  report(y, "out");
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  report(dx, "grad.input");
  report_set(gradients, "grad.");
}

}  // namespace conformance
