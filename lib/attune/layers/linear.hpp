// A linear layer over tokens.
//
//   y = x·W + b,      dx = dy·Wᵀ,   dW += xᵀ·dy,   db += Σ_rows dy
//
// W is [d_in, d_out], row-major: PyTorch's `nn.Linear.weight` is its transpose.
#pragma once

#include <attune/core/gradients.hpp>
#include <attune/kernels/product.hpp>
#include <attune/core/parameters.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

struct LinearShape {
  int rows;   // tokens
  int d_in;   // features of a token going in
  int d_out;  // and coming out
  bool bias = true;
};

/// W and b of a Linear; without a bias, W alone. Matrix and Vector are what stands for each tensor
/// (parameters.hpp).
template <class Scalar, int d_in, int d_out, bool kBias, template <class, int, int> class Matrix = Tensor,
          template <class, int, int> class Vector = Matrix>
struct LinearParameters {
  [[no_unique_address]] Matrix<Scalar, d_in, d_out> weight;
  [[no_unique_address]] Vector<Scalar, 1, d_out> bias;

  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
    visitor(TensorPath{"weight", parent}, sets.weight...);
    visitor(TensorPath{"bias", parent}, sets.bias...);
  }
};
template <class Scalar, int d_in, int d_out, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
struct LinearParameters<Scalar, d_in, d_out, false, Matrix, Vector> {
  [[no_unique_address]] Matrix<Scalar, d_in, d_out> weight;

  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
    visitor(TensorPath{"weight", parent}, sets.weight...);
  }
};

template <LinearShape shape, class ScalarType = float>
struct Linear {
  static_assert(shape.rows > 0 && shape.d_in > 0 && shape.d_out > 0,
                "attune::Linear: rows, d_in and d_out must be positive; set all three in LinearShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Linear<shape, Other>;
  using Input = Tensor<Scalar, shape.rows, shape.d_in>;
  using Output = Tensor<Scalar, shape.rows, shape.d_out>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = LinearParameters<Scalar, shape.d_in, shape.d_out, shape.bias, Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kTrained<decltype(Gradients::weight)>;
  static constexpr bool kUpdatesInBackward = true;
  static constexpr bool kRunsInLockstep = true;
  struct Tape {};  // backward needs nothing but the input
  struct Scratch {};
  struct InferenceScratch {};

  using InputView = MatrixView<const Scalar, shape.rows, shape.d_in>;
  using InputGradientView = MatrixView<Scalar, shape.rows, shape.d_in>;
  using OutputView = MatrixView<Scalar, shape.rows, shape.d_out>;
  using OutputGradientView = MatrixView<const Scalar, shape.rows, shape.d_out>;

  /// y[rows, d_out] = x[rows, d_in]·W + b. `y` may not overlap `x`.
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y) {
    if constexpr (shape.bias) {
      kernels::product(x, view(parameters.weight), y, kernels::AddBias<Scalar>{parameters.bias.data()});
    } else {
      kernels::product(x, view(parameters.weight), y);
    }
  }
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, InferenceScratch&) {
    forward(parameters, x, y);
  }
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, Tape&, Scratch&) {
    forward(parameters, x, y);
  }

  /// gradients += dL/dW, dL/db.
  template <class Gradients>
  static void backward_parameters(InputView x, OutputGradientView dy, Gradients& gradients) {
    add_product(x.transpose(), dy, view(gradients.weight));
    if constexpr (shape.bias) add_column_sums(dy, view(gradients.bias));
  }

  /// dx[rows, d_in] = dy·Wᵀ, or += with kernels::Accumulate. `dx` may not overlap `dy`.
  template <class Set = Parameters, class Epilogue = kernels::Assign>
  static void backward_input(const Set& parameters, OutputGradientView dy, InputGradientView dx,
                             Epilogue epilogue = {}) {
    kernels::product(dy, view(parameters.weight).transpose(), dx, epilogue);
  }

  /// Both: dx is overwritten, gradients accumulate. `dx` may not overlap `dy`, nor, with ParameterUpdates,
  /// `x`.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set& parameters, InputView x, const Tape&, OutputGradientView dy,
                       InputGradientView dx, Gradients& gradients, Scratch&) {
    constexpr bool kInputFirst = detail::kUpdatesAtOnce<decltype(gradients.weight)>;
    if constexpr (!kInputFirst) backward_parameters(x, dy, gradients);
    backward_input(parameters, dy, dx);
    if constexpr (kInputFirst) backward_parameters(x, dy, gradients);
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set&, InputView x, const Tape&, OutputGradientView dy, Gradients& gradients,
                       Scratch&) {
    backward_parameters(x, dy, gradients);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
