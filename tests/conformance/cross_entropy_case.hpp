// Cross-entropy: the loss, reduced or row by row, its gradient, and log-softmax of the logits.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct CrossEntropyData {
  const Scalar* logits;                   // [rows, classes]
  const int* targets;                     // [rows]
  const Scalar* class_weights = nullptr;  // [classes]
  const Scalar* grad_out = nullptr;       // [rows], without reduction
};

enum class Reduced { kYes, kNo };

template <attune::CrossEntropyOptions options, Reduced reduced, int rows, int classes, class Scalar>
void cross_entropy_case(const CrossEntropyData<Scalar>& data) {
  using Loss = attune::CrossEntropy<options>;
  using View = attune::MatrixView<const Scalar, rows, classes>;
  static attune::Tensor<Scalar, rows, classes> log_prob, d_logits;
  const View logits(data.logits);
  const std::span<const int, rows> targets(data.targets, rows);

  attune::LogSoftmax<rows, classes, Scalar>::forward(logits, log_prob);
  report(log_prob, "log_prob");
  if constexpr (reduced == Reduced::kYes) {
    const attune::MatrixView<const Scalar, 1, classes> class_weights(data.class_weights);
    const auto result = data.class_weights == nullptr
                            ? Loss::forward(logits, targets, d_logits)
                            : Loss::forward(logits, targets, class_weights, d_logits);
    expect_ok(result.status);
    report(&result.loss, 1, "loss");
  } else {
    static attune::Tensor<Scalar, rows, 1> losses;
    expect_ok(Loss::forward_rows(logits, targets, losses, data.class_weights));
    report(losses, "loss");
    if (data.grad_out == nullptr) return;
    const attune::MatrixView<const Scalar, rows, 1> d_losses(data.grad_out);
    expect_ok(Loss::backward_rows(logits, targets, d_losses, d_logits, data.class_weights));
  }
  report(d_logits, "grad.logits");
}

}  // namespace conformance
