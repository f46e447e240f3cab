// The functions between the linear layers of a feed-forward network, and their derivatives. Packets and
// scalars.
//
//   relu(x) = max(x, 0)                          relu′ = 1 for x > 0, else 0
//   silu(x) = x·σ(x)                             silu′ = σ + x·σ·(1 − σ)
//   gelu(x) = x·Φ(x)                             gelu′ = Φ + x·Φ′
//   gelu_tanh(x) = x·½(1 + tanh a) = x·σ(2a),  a = √(2/π)·(x + 0.044715·x³)
//                                                gelu_tanh′ = σ + x·σ·(1 − σ)·2a′
#pragma once

#include <attune/kernels/nonzero.hpp>
#include <attune/kernels/sigmoids.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Which function: PyTorch's relu, silu, gelu and gelu(approximate="tanh").
enum class Activation {
  kRelu,      // Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", 2010
  kSilu,      // Elfwing et al., "Sigmoid-Weighted Linear Units", 2017
  kGelu,      // Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: Φ is the normal distribution
  kGeluTanh,  // the same paper's approximation
};

namespace kernels {

namespace detail {

// σ(2a) of gelu_tanh, and 1 − σ(2a).
template <class P>
ATTUNE_INLINE P gelu_tanh_gate(const P& x, const P& square, P& complement) {
  using Scalar = ScalarOf<P>;
  constexpr auto kTwice = Scalar(2 * 0.79788456080286535588);  // 2·√(2/π)
  const P scaled = multiply(x, broadcast<P>(kTwice));
  const P argument = multiply_add(multiply(scaled, square), broadcast<P>(Scalar(0.044715)), scaled);
  return sigmoid(argument, complement);
}

}  // namespace detail

/// The function's value. A NaN stays NaN.
template <Activation kind, class P>
ATTUNE_INLINE P activate(const P& x) {
  P unused;
  if constexpr (kind == Activation::kRelu) {
    const P zero = broadcast<P>(ScalarOf<P>(0));
    return select_less(x, zero, zero, x);
  } else if constexpr (kind == Activation::kSilu) {
    return multiply(x, sigmoid(x, unused));
  } else if constexpr (kind == Activation::kGelu) {
    return multiply(x, normal_distribution(x, unused));
  } else {
    return multiply(x, detail::gelu_tanh_gate(x, multiply(x, x), unused));
  }
}

/// dy times the derivative at x.
template <Activation kind, class P>
ATTUNE_INLINE P activate_backward(const P& x, const P& dy) {
  using Scalar = ScalarOf<P>;
  if constexpr (kind == Activation::kRelu) {
    const P zero = broadcast<P>(Scalar(0));
    return select_less(zero, x, dy, zero);
  } else if constexpr (kind == Activation::kSilu) {
    P complement;
    const P gate = sigmoid(x, complement);
    return multiply(dy, multiply_add(multiply(x, gate), complement, gate));
  } else if constexpr (kind == Activation::kGelu) {
    P density;
    const P gate = normal_distribution(x, density);
    return multiply(dy, multiply_add(x, density, gate));
  } else {
    constexpr auto kTwice = Scalar(2 * 0.79788456080286535588);
    P complement;
    const P square = multiply(x, x);
    const P gate = detail::gelu_tanh_gate(x, square, complement);
    const P slope = multiply_add(square, broadcast<P>(Scalar(3 * 0.044715) * kTwice), broadcast<P>(kTwice));
    return multiply(dy, multiply_add(multiply(multiply(x, slope), gate), complement, gate));
  }
}

/// y = activation(x), `size` scalars. `y` may be `x`.
template <Activation kind, class Scalar>
[[gnu::noinline]] void activate(int size, const Scalar* x, Scalar* y) {
  for_each_packet<Scalar>(
      size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA { store(y + i, activate<kind>(load<P>(x + i))); });
}

/// dx = dy ∘ activation′(x). `dx` may be `dy` or `x`. With kZeroStays, dx is zero where dy is, whatever x is.
template <Activation kind, bool kZeroStays = false, class Scalar>
[[gnu::noinline]] void activate_backward(int size, const Scalar* x, const Scalar* dy, Scalar* dx) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P gradient = load<P>(dy + i);
    P product = activate_backward<kind>(load<P>(x + i), gradient);
    if constexpr (kZeroStays) product = unless_zero(gradient, product);
    store(dx + i, product);
  });
}

}  // namespace kernels

}  // namespace attune::inline ATTUNE_ARITHMETIC
