// Softmax over rows, forward and backward.
//
//   p_j = e^(x_j) / Σ_k e^(x_k)                dx = p ∘ (dp − Σ_k p_k dp_k)
//
// The row's maximum is subtracted first, so any finite input is safe. −∞ gives a zero; a row of −∞ alone
// gives zeros.
#pragma once

#include <attune/kernels/rows.hpp>
#include <attune/core/tensor.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Softmax of each of the kRows rows of kCols scalars.
template <int kRows, int kCols, class Scalar = float>
struct Softmax {
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;

  /// y[rows, cols] = softmax(x). `y` may be `x`.
  static void forward(MatrixView<const Scalar, kRows, kCols> x, MatrixView<Scalar, kRows, kCols> y) {
    for (int i = 0; i < kRows; ++i) {
      Scalar* row = y.data + i * kCols;
      if (x.data != y.data) {
        for (int j = 0; j < kCols; ++j) row[j] = x(i, j);
      }
      kernels::softmax_row<Scalar, kCols>(row);
    }
  }

  /// dx[rows, cols] from the output y of forward and dy. `dx` may be `dy` or `y`.
  static void backward(MatrixView<const Scalar, kRows, kCols> y, MatrixView<const Scalar, kRows, kCols> dy,
                       MatrixView<Scalar, kRows, kCols> dx) {
    for (int i = 0; i < kRows; ++i) {
      kernels::softmax_row_backward<Scalar, kCols>(y.data + i * kCols, dy.data + i * kCols,
                                                   dx.data + i * kCols, Scalar(1));
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
