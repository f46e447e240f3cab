// Activation functions, element by element: ReLU, SiLU, and GELU exact and by tanh (kernels/activation.hpp
// has their formulas and papers).
//
//   y = f(x),      dx = dy ∘ f′(x)
#pragma once

#include <attune/kernels/activation.hpp>
#include <attune/core/parameters.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// One of the functions on [rows, cols]. Nothing is taped: backward needs the input alone and computes f′
/// anew.
template <Activation kind, int kRows, int kCols, class ScalarType = float>
struct ActivationLayer {
  static_assert(kRows > 0 && kCols > 0, "attune::ActivationLayer: rows and cols must be positive");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = ActivationLayer<kind, kRows, kCols, Other>;
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  using Parameters = NoParameters;
  static constexpr bool kRunsInLockstep = kind == Activation::kRelu || kind == Activation::kSilu;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  using InputView = MatrixView<const Scalar, kRows, kCols>;
  using InputGradientView = MatrixView<Scalar, kRows, kCols>;
  using OutputView = MatrixView<Scalar, kRows, kCols>;
  using OutputGradientView = MatrixView<const Scalar, kRows, kCols>;

  /// y[rows, cols] = f(x). `y` may be `x`, but then backward has no input any more.
  static void forward(InputView x, OutputView y) { kernels::activate<kind>(kRows * kCols, x.data, y.data); }
  static void forward(const Parameters&, InputView x, OutputView y, InferenceScratch&) { forward(x, y); }
  static void forward(const Parameters&, InputView x, OutputView y, Tape&, Scratch&) { forward(x, y); }

  /// dx[rows, cols] = dy ∘ f′(x). `dx` may be `dy` or `x`.
  static void backward(InputView x, OutputGradientView dy, InputGradientView dx) {
    kernels::activate_backward<kind>(kRows * kCols, x.data, dy.data, dx.data);
  }
  static void backward(const Parameters&, InputView x, const Tape&, OutputGradientView dy,
                       InputGradientView dx, Parameters&, Scratch&) {
    backward(x, dy, dx);
  }
  /// The same where nobody asks for dx: nothing to do.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView, Parameters&, Scratch&) {
  }
};

template <int kRows, int kCols, class Scalar = float>
using Relu = ActivationLayer<Activation::kRelu, kRows, kCols, Scalar>;
template <int kRows, int kCols, class Scalar = float>
using Silu = ActivationLayer<Activation::kSilu, kRows, kCols, Scalar>;
template <int kRows, int kCols, class Scalar = float>
using Gelu = ActivationLayer<Activation::kGelu, kRows, kCols, Scalar>;
template <int kRows, int kCols, class Scalar = float>
using GeluTanh = ActivationLayer<Activation::kGeluTanh, kRows, kCols, Scalar>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
