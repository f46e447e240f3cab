// Softmax over rows, forward and backward.
//
//   p_j = e^(x_j) / Σ_k e^(x_k)                dx = p ∘ (dp − Σ_k p_k dp_k)
//
// The row's maximum is subtracted first, so any finite input is safe. −∞ gives a zero; a row of −∞ alone
// gives zeros.
#pragma once

#include <attune/core/layer.hpp>
#include <attune/kernels/nonzero.hpp>
#include <attune/kernels/rows.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Softmax of each of the kRows rows of kCols scalars.
template <int kRows, int kCols, class ScalarType = float>
struct Softmax {
  static_assert(kRows > 0 && kCols > 0, "attune::Softmax: rows and cols must be positive");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Softmax<kRows, kCols, Other>;
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  using Parameters = NoParameters;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr bool kTakesMask = false;
  /// y: backward needs nothing else.
  struct Tape {
    Output y;
  };
  struct Scratch {};
  struct InferenceScratch {};

  /// y[rows, cols] = softmax(x). `y` may be `x`.
  static void forward(ConstView<Input> x, View<Output> y) {
    for (int i = 0; i < kRows; ++i) {
      Scalar* row = y.data + i * kCols;
      if (x.data != y.data) {
        for (int j = 0; j < kCols; ++j) row[j] = x(i, j);
      }
      kernels::softmax_rows<Scalar, 1, kCols>(row);
    }
  }
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&) {
    forward(x, y);
  }
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&) {
    forward(x, y);
    for (int i = 0; i < Output::size; ++i) tape.y.values[i] = y.data[i];
  }

  /// dx[rows, cols] from the output y of forward and dy. `dx` may be `dy` or `y`. With a mask, a row of dx is
  /// zero where that of dy is, whatever y holds.
  template <AttentionMask Mask = NoMask>
  static void backward(ConstView<Output> y, ConstView<Output> dy, View<Input> dx, const Mask& = {}) {
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kMasks<Mask>) {
        if (kernels::is_zero_row(kCols, dy.data + i * kCols)) {
          for (int j = 0; j < kCols; ++j) dx(i, j) = Scalar(0);
          continue;
        }
      }
      kernels::softmax_row_backward<Scalar, kCols>(y.data + i * kCols, dy.data + i * kCols,
                                                   dx.data + i * kCols, Scalar(1));
    }
  }
  template <class Dx, AttentionMask Mask = NoMask>
  static void backward(const Parameters&, ConstView<Input>, const Tape& tape, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Mask& mask = {}) {
    if constexpr (kAsked<Dx>) backward(tape.y, dy, dx, mask);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
