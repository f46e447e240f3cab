// The feed-forward network of a transformer, token by token: two linear layers and an activation between them
// (Vaswani et al., "Attention Is All You Need", 2017, section 3.3), or a gate (Shazeer, "GLU Variants Improve
// Transformer", 2020).
//
//   FeedForward:       h = x·W₁ + b₁,   a = f(h),   y = a·W₂ + b₂
//   GatedFeedForward:  g = x·W_gate + b_gate,   u = x·W_up + b_up,   a = f(g) ∘ u,   y = a·W_down + b_down
//
//   dW₂ += aᵀ·dy,   da = dy·W₂ᵀ,   dh = da ∘ f′(h),   dW₁ += xᵀ·dh,   dx = dh·W₁ᵀ
//   du = da ∘ f(g),   dg = da ∘ u ∘ f′(g),   dx = dg·W_gateᵀ + du·W_upᵀ
//
// In training dropout may follow a, as in PyTorch's transformer layers.
#pragma once

#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/core/initialise.hpp>
#include <attune/layers/linear.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Sizes and options of either network.
struct FeedForwardShape {
  int rows;     // tokens
  int d_model;  // features of a token, going in and coming out
  int d_ff;     // of a token between the two layers
  Activation activation = Activation::kRelu;
  bool bias = true;
  double dropout = 0;  // probability, in training, after the activation
};

template <FeedForwardShape shape, class ScalarType = float>
struct FeedForward {
  static_assert(
      shape.rows > 0 && shape.d_model > 0 && shape.d_ff > 0,
      "attune::FeedForward: rows, d_model and d_ff must be positive; set all three in FeedForwardShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = FeedForward<shape, Other>;
  using FirstLinear = Linear<LinearShape{shape.rows, shape.d_model, shape.d_ff, shape.bias}, Scalar>;
  using SecondLinear = Linear<LinearShape{shape.rows, shape.d_ff, shape.d_model, shape.bias}, Scalar>;
  using HiddenDropout = Dropout<DropoutShape{shape.rows, shape.d_ff, shape.dropout}, Scalar>;
  using Input = typename FirstLinear::Input;
  using Output = typename SecondLinear::Output;
  using Hidden = Tensor<Scalar, shape.rows, shape.d_ff>;

  /// W₁, b₁, W₂, b₂.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] typename FirstLinear::template ParametersOf<Matrix, Vector> linear1;
    [[no_unique_address]] typename SecondLinear::template ParametersOf<Matrix, Vector> linear2;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_linear1{"linear1", parent}, of_linear2{"linear2", parent};
      FirstLinear::Parameters::visit(visitor, &of_linear1, sets.linear1...);
      SecondLinear::Parameters::visit(visitor, &of_linear2, sets.linear2...);
    }
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(linear1, initialiser, rng);
      attune::initialise(linear2, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;
  static constexpr bool kRunsInLockstep =
      shape.activation == Activation::kRelu || shape.activation == Activation::kSilu;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = FirstLinear::template kReadsInput<decltype(Gradients::linear1)>;

  /// h alone: f(h) is computed once more in backward, which then uses the same storage for dh.
  struct Tape {
    Hidden hidden;
    [[no_unique_address]] typename HiddenDropout::Tape dropout;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires HiddenDropout::kDrops {
      visitor(dropout);
    }
  };
  /// a, then da.
  struct Scratch {
    Hidden activated;
  };
  struct InferenceScratch {
    Hidden hidden;
  };

  using InputView = typename FirstLinear::InputView;
  using InputGradientView = typename FirstLinear::InputGradientView;
  using OutputView = typename SecondLinear::OutputView;
  using OutputGradientView = typename SecondLinear::OutputGradientView;

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`.
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, InferenceScratch& scratch) {
    FirstLinear::forward(parameters.linear1, x, scratch.hidden);
    kernels::activate<shape.activation>(Hidden::size, scratch.hidden.data(), scratch.hidden.data());
    SecondLinear::forward(parameters.linear2, scratch.hidden, y);
  }
  /// The same, with dropout, and the tape keeps what backward needs beside x: `y` may be `x` only where it
  /// will not be called.
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, Tape& tape, Scratch& scratch) {
    FirstLinear::forward(parameters.linear1, x, tape.hidden);
    activate(tape, scratch);
    SecondLinear::forward(parameters.linear2, scratch.activated, y);
  }

  /// dx[rows, d_model] from dy[rows, d_model], overwritten; gradients accumulate. The tape is used up. `dx`
  /// may be `x`, and it may be `dy`.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Gradients& gradients, Scratch& scratch) {
    backward(parameters, x, tape, dy, gradients, scratch);
    FirstLinear::backward_input(parameters.linear1, tape.hidden, dx);
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       Gradients& gradients, Scratch& scratch) {
    if constexpr (SecondLinear::template kReadsInput<decltype(gradients.linear2)>) activate(tape, scratch);
    SecondLinear::backward_parameters(scratch.activated, dy, gradients.linear2);
    SecondLinear::backward_input(parameters.linear2, dy, scratch.activated);
    HiddenDropout::backward(tape.dropout, scratch.activated, scratch.activated);
    kernels::activate_backward<shape.activation>(Hidden::size, tape.hidden.data(), scratch.activated.data(),
                                                 tape.hidden.data());
    FirstLinear::backward_parameters(x, tape.hidden, gradients.linear1);
  }

 private:
  static void activate(const Tape& tape, Scratch& scratch) {
    kernels::activate<shape.activation>(Hidden::size, tape.hidden.data(), scratch.activated.data());
    HiddenDropout::apply(scratch.activated, tape.dropout, scratch.activated);
  }
};

namespace kernels {

/// a = f(gate) ∘ up, `size` scalars. `a` may be either.
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate(int size, const Scalar* gate, const Scalar* up, Scalar* a) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    store(a + i, multiply(activate<kind>(load<P>(gate + i)), load<P>(up + i)));
  });
}

/// From da: gate becomes da ∘ up ∘ f′(gate), up becomes da ∘ f(gate).
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate_backward(int size, const Scalar* da, Scalar* gate, Scalar* up) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P g = load<P>(gate + i), gradient = load<P>(da + i);
    const P d_gate = activate_backward<kind>(g, multiply(gradient, load<P>(up + i)));
    store(up + i, multiply(gradient, activate<kind>(g)));
    store(gate + i, d_gate);
  });
}

}  // namespace kernels

template <FeedForwardShape shape, class ScalarType = float>
struct GatedFeedForward {
  static_assert(
      shape.rows > 0 && shape.d_model > 0 && shape.d_ff > 0,
      "attune::GatedFeedForward: rows, d_model and d_ff must be positive; set all three in FeedForwardShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = GatedFeedForward<shape, Other>;
  using InLinear = Linear<LinearShape{shape.rows, shape.d_model, shape.d_ff, shape.bias}, Scalar>;
  using OutLinear = Linear<LinearShape{shape.rows, shape.d_ff, shape.d_model, shape.bias}, Scalar>;
  using HiddenDropout = Dropout<DropoutShape{shape.rows, shape.d_ff, shape.dropout}, Scalar>;
  using Input = typename InLinear::Input;
  using Output = typename OutLinear::Output;
  using Hidden = Tensor<Scalar, shape.rows, shape.d_ff>;

  /// W_gate, b_gate, W_up, b_up, W_down, b_down.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] typename InLinear::template ParametersOf<Matrix, Vector> gate;
    [[no_unique_address]] typename InLinear::template ParametersOf<Matrix, Vector> up;
    [[no_unique_address]] typename OutLinear::template ParametersOf<Matrix, Vector> down;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_gate{"gate", parent}, of_up{"up", parent}, of_down{"down", parent};
      InLinear::Parameters::visit(visitor, &of_gate, sets.gate...);
      InLinear::Parameters::visit(visitor, &of_up, sets.up...);
      OutLinear::Parameters::visit(visitor, &of_down, sets.down...);
    }
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(gate, initialiser, rng);
      attune::initialise(up, initialiser, rng);
      attune::initialise(down, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;
  static constexpr bool kRunsInLockstep =
      shape.activation == Activation::kRelu || shape.activation == Activation::kSilu;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = InLinear::template kReadsInput<decltype(Gradients::gate)> ||
                                      InLinear::template kReadsInput<decltype(Gradients::up)>;

  /// g and u: their product is computed once more in backward, which then uses the same storage for dg and
  /// du.
  struct Tape {
    Hidden gate;
    Hidden up;
    [[no_unique_address]] typename HiddenDropout::Tape dropout;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires HiddenDropout::kDrops {
      visitor(dropout);
    }
  };
  /// a, then da.
  struct Scratch {
    Hidden gated;
  };
  struct InferenceScratch {
    Hidden gate;
    Hidden up;
  };

  using InputView = typename InLinear::InputView;
  using InputGradientView = typename InLinear::InputGradientView;
  using OutputView = typename OutLinear::OutputView;
  using OutputGradientView = typename OutLinear::OutputGradientView;

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`.
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, InferenceScratch& scratch) {
    InLinear::forward(parameters.gate, x, scratch.gate);
    InLinear::forward(parameters.up, x, scratch.up);
    kernels::gate<shape.activation>(Hidden::size, scratch.gate.data(), scratch.up.data(),
                                    scratch.gate.data());
    OutLinear::forward(parameters.down, scratch.gate, y);
  }
  /// The same, with dropout, and the tape keeps what backward needs beside x: `y` may be `x` only where it
  /// will not be called.
  template <class Set = Parameters>
  static void forward(const Set& parameters, InputView x, OutputView y, Tape& tape, Scratch& scratch) {
    InLinear::forward(parameters.gate, x, tape.gate);
    InLinear::forward(parameters.up, x, tape.up);
    gate(tape, scratch);
    OutLinear::forward(parameters.down, scratch.gated, y);
  }

  /// dx[rows, d_model] from dy[rows, d_model], overwritten; gradients accumulate. The tape is used up. `dx`
  /// may be `x`, and it may be `dy`.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Gradients& gradients, Scratch& scratch) {
    backward(parameters, x, tape, dy, gradients, scratch);
    InLinear::backward_input(parameters.gate, tape.gate, dx);
    InLinear::backward_input(parameters.up, tape.up, dx, kernels::Accumulate{});
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, class Gradients>
  static void backward(const Set& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       Gradients& gradients, Scratch& scratch) {
    if constexpr (OutLinear::template kReadsInput<decltype(gradients.down)>) gate(tape, scratch);
    OutLinear::backward_parameters(scratch.gated, dy, gradients.down);
    OutLinear::backward_input(parameters.down, dy, scratch.gated);
    HiddenDropout::backward(tape.dropout, scratch.gated, scratch.gated);
    kernels::gate_backward<shape.activation>(Hidden::size, scratch.gated.data(), tape.gate.data(),
                                             tape.up.data());
    InLinear::backward_parameters(x, tape.gate, gradients.gate);
    InLinear::backward_parameters(x, tape.up, gradients.up);
  }

 private:
  static void gate(const Tape& tape, Scratch& scratch) {
    kernels::gate<shape.activation>(Hidden::size, tape.gate.data(), tape.up.data(), scratch.gated.data());
    HiddenDropout::apply(scratch.gated, tape.dropout, scratch.gated);
  }
};

namespace detail {

constexpr FeedForwardShape with_silu(FeedForwardShape shape) {
  shape.activation = Activation::kSilu;
  return shape;
}

}  // namespace detail

/// Gated by SiLU, whatever the shape's activation.
template <FeedForwardShape shape, class Scalar = float>
using SwiGlu = GatedFeedForward<detail::with_silu(shape), Scalar>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
