// The logarithm of softmax over rows, forward and backward, without leaving the range of logits.
//
//   y_j = x_j − ln Σ_k e^(x_k)                dx = dy − e^y · Σ_k dy_k
#pragma once

#include <attune/kernels/log_softmax_row.hpp>
#include <attune/core/tensor.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Log-softmax of each of the kRows rows of kCols scalars. −∞ stays −∞ beside a finite logit; a row with a
/// NaN or +∞, or of −∞ alone, becomes NaN, as PyTorch's.
template <int kRows, int kCols, class Scalar = float>
struct LogSoftmax {
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;

  /// y[rows, cols] = ln softmax(x). `y` may be `x`.
  static void forward(MatrixView<const Scalar, kRows, kCols> x, MatrixView<Scalar, kRows, kCols> y) {
    for (int i = 0; i < kRows; ++i) kernels::log_softmax_row<kCols>(x.data + i * kCols, y.data + i * kCols);
  }

  /// dx[rows, cols] from the output y of forward and dy. `dx` may be `dy` or `y`.
  static void backward(MatrixView<const Scalar, kRows, kCols> y, MatrixView<const Scalar, kRows, kCols> dy,
                       MatrixView<Scalar, kRows, kCols> dx) {
    for (int i = 0; i < kRows; ++i) {
      kernels::log_softmax_row_backward<kCols>(y.data + i * kCols, dy.data + i * kCols, dx.data + i * kCols);
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
