// Activation functions of feed-forward networks, and their derivatives, for packets and scalars.
//
//   relu(x) = max(x, 0)                          relu′ = 1 for x > 0, else 0
//   silu(x) = x·σ(x)                             silu′ = σ + x·σ·(1 − σ)
//   gelu(x) = x·Φ(x)                             gelu′ = Φ + x·Φ′
//   gelu_tanh(x) = x·½(1 + tanh a) = x·σ(2a),  a = √(2/π)·(x + 0.044715·x³)
//                                                gelu_tanh′ = σ + x·σ·(1 − σ)·2a′
//   tanh(x), σ(x)                                1 − tanh² = 4·σ(2x)·(1 − σ(2x)),  σ·(1 − σ)
//   quick_gelu(x) = x·σ(1.702·x)                 σ + x·σ·(1 − σ)·1.702
//   squared_relu(x) = max(x, 0)²                 2·max(x, 0)
//   hard_swish(x) = x·g,  g = min(max(x + 3, 0), 6)/6
//                                                g + x/6 for |x| < 3, else g
//   elu(x) = x for x > 0, else eˣ − 1 = 2t/(1 − t),  t = tanh(x/2)
//                                                1 for x > 0, else elu + 1
#pragma once

#include <attune/kernels/cortex_m/activation.hpp>
#include <attune/kernels/cortex_m/relu.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/kernels/simd/sigmoids.hpp>

namespace ATTUNE_NAMESPACE {

/// The activation function: PyTorch's relu, silu, gelu, gelu(approximate="tanh"), tanh, sigmoid,
/// hardswish and elu, and two from published models. Fingerprints hash the numbers.
enum class Activation {
  kRelu = 0,       // Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", 2010
  kSilu = 1,       // Elfwing et al., "Sigmoid-Weighted Linear Units", 2017
  kGelu = 2,       // Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: Φ is the normal distribution
  kGeluTanh = 3,   // the same paper's approximation
  kTanh = 4,       // the hyperbolic tangent
  kSigmoid = 5,    // 1/(1 + e^(−x))
  kQuickGelu = 6,  // Hendrycks and Gimpel's approximation by a sigmoid, in CLIP (Radford et al., 2021)
  kSquaredRelu = 7,  // So et al., "Primer: Searching for Efficient Transformers for Language Modeling", 2021
  kHardSwish = 8,    // Howard et al., "Searching for MobileNetV3", 2019
  kElu = 9,          // Clevert et al., "Exponential Linear Units", 2016, with alpha = 1
};
/// As many functions: kRelu to the last one.
inline constexpr int kActivationCount = static_cast<int>(Activation::kElu) + 1;

namespace kernels {

namespace detail {

// gelu_tanh and its derivative. For |x| < 2, tanh a is a polynomial.
template <class P>
ATTUNE_INLINE P gelu_tanh_near(const P& x, P& slope) {
  using Constant = Real<ScalarOf<P>>;
  const P half = multiply(x, broadcast<P>(Constant(0.5))), one = broadcast<P>(Constant(1));
  const P tanh = odd_polynomial(half, ErrorFunctionCoefficients<Constant>::kTanhNear, kTanhCenter);
  const P above = add(one, tanh), below = subtract(one, tanh);  // 2·σ(2a) and 2·(1 − σ(2a))
  const P scale = broadcast<P>(Constant(0.79788456080286535588));
  const P rise =
      multiply_add(multiply(x, x), broadcast<P>(Constant(3 * 0.044715 * 0.79788456080286535588)), scale);
  slope = multiply(multiply_add(multiply(x, rise), below, one), multiply(above, broadcast<P>(Constant(0.5))));
  return multiply(half, above);
}
template <class P>
ATTUNE_INLINE P gelu_tanh_far(const P& x, P& slope) {
  using Constant = Real<ScalarOf<P>>;
  constexpr auto kTwice = Constant(2 * 0.79788456080286535588);  // 2·√(2/π)
  P complement;
  const P square = multiply(x, x), scaled = multiply(x, broadcast<P>(kTwice));
  const P argument = multiply_add(multiply(scaled, square), broadcast<P>(Constant(0.044715)), scaled);
  const P gate = sigmoid(argument, complement);
  const P rise = multiply_add(square, broadcast<P>(Constant(3 * 0.044715) * kTwice), broadcast<P>(kTwice));
  // Where x·rise could overflow, the gate or its complement is 0, and the gate is the slope.
  const P zero = broadcast<P>(Constant(0)),
          product = select_less(magnitude(x), broadcast<P>(Constant(0x1p32)), multiply(x, rise), zero);
  slope = multiply_add(multiply(product, gate), complement, gate);
  // x − x·(1 − σ) for positive x, with σ near one. From 8 on, 1 − σ is negligible.
  const P most = select_less(x, broadcast<P>(Constant(8)), x, zero);
  return select_less(x, zero, multiply(x, gate), subtract_product(x, most, complement));
}
// max(x, 0). A NaN stays NaN.
template <class P>
ATTUNE_INLINE P positive_part(const P& x) {
  const P zero = broadcast<P>(ScalarOf<P>(0));
  return select_less(x, zero, zero, x);
}

}  // namespace detail

/// Whether value and derivative share a costly part.
constexpr bool shares_evaluation(Activation kind) { return kind != Activation::kRelu; }

/// The value and the derivative at x, for functions that share an evaluation. A NaN stays NaN.
template <Activation kind, class P>
  requires(kind == Activation::kSilu)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  P complement;
  const P gate = sigmoid(x, complement), value = multiply(x, gate);
  slope = multiply_add(value, complement, gate);
  return value;
}
template <Activation kind, class P>
  requires(kind == Activation::kGelu)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  const P tail = normal_tail(x);
  slope = gelu_slope(x, tail, normal_density(x));
  return gelu(x, tail);
}
template <Activation kind, class P>
  requires(kind == Activation::kGeluTanh && kIsScalar<P>)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  return magnitude(x) < 2 ? detail::gelu_tanh_near(x, slope) : detail::gelu_tanh_far(x, slope);
}
template <Activation kind, class P>
  requires(kind == Activation::kGeluTanh && !kIsScalar<P>)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  const P size = magnitude(x), bound = broadcast<P>(Real<ScalarOf<P>>(2));
  P slope_near, slope_far;
  const P near = detail::gelu_tanh_near(x, slope_near), far = detail::gelu_tanh_far(x, slope_far);
  slope = select_less(size, bound, slope_near, slope_far);
  return select_less(size, bound, near, far);
}
template <Activation kind, class P>
  requires(kind == Activation::kTanh)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  P complement;
  const P gate = multiply(sigmoid(add(x, x), complement), broadcast<P>(Real<ScalarOf<P>>(4)));
  slope = multiply(gate, complement);  // 1 − tanh² would suffer cancellation
  return hyperbolic_tangent(x);
}
template <Activation kind, class P>
  requires(kind == Activation::kSigmoid)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  P complement;
  const P value = sigmoid(x, complement);
  slope = multiply(value, complement);
  return value;
}
template <Activation kind, class P>
  requires(kind == Activation::kQuickGelu)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  using Constant = Real<ScalarOf<P>>;
  P complement;
  const P scaled = multiply(x, broadcast<P>(Constant(1.702))), gate = sigmoid(scaled, complement);
  // Where `scaled` could overflow, the gate is the slope.
  const P zero = broadcast<P>(Constant(0)),
          bounded = select_less(magnitude(x), broadcast<P>(Constant(0x1p32)), scaled, zero);
  slope = multiply_add(multiply(bounded, gate), complement, gate);
  return multiply(x, gate);
}
template <Activation kind, class P>
  requires(kind == Activation::kSquaredRelu)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  const P positive = detail::positive_part(x);
  slope = add(positive, positive);
  return multiply(positive, positive);
}
template <Activation kind, class P>
  requires(kind == Activation::kHardSwish)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  using Constant = Real<ScalarOf<P>>;
  const P zero = broadcast<P>(Constant(0)), one = broadcast<P>(Constant(1));
  const P three = broadcast<P>(Constant(3)), sixth = broadcast<P>(Constant(1.0 / 6));
  const P rising = multiply(add(x, three), sixth);  // a NaN stays here
  const P gate = select_less(x, broadcast<P>(Constant(-3)), zero, select_less(three, x, one, rising));
  slope = multiply_add(select_less(magnitude(x), three, x, zero), sixth, gate);
  return multiply(x, gate);
}
template <Activation kind, class P>
  requires(kind == Activation::kElu)
ATTUNE_INLINE P activate(const P& x, P& slope) {
  using Constant = Real<ScalarOf<P>>;
  const P zero = broadcast<P>(Constant(0)), one = broadcast<P>(Constant(1));
  const P half = multiply(select_less(x, zero, x, zero), broadcast<P>(Constant(0.5)));
  const P tanh = hyperbolic_tangent(half);  // eˣ − 1 would cancel near 0
  const P value = select_less(x, zero, divide(add(tanh, tanh), subtract(one, tanh)), x);  // a NaN stays here
  slope = select_less(zero, x, one, add(value, one));
  return value;
}

/// The function's value. A NaN stays NaN.
template <Activation kind, class P>
ATTUNE_INLINE P activate(const P& x) {
  P unused;
  return activate<kind>(x, unused);
}
template <Activation kind, class P>
  requires(kind == Activation::kGelu)
ATTUNE_INLINE P activate(const P& x) { return gelu(x, normal_tail(x)); }
template <Activation kind, class P>
  requires(kind == Activation::kRelu)
ATTUNE_INLINE P activate(const P& x) { return detail::positive_part(x); }

/// The value, and dx = dy times the derivative at x.
template <Activation kind, class P>
ATTUNE_INLINE P activate_with_gradient(const P& x, const P& dy, P& dx) {
  P slope;
  const P value = activate<kind>(x, slope);
  dx = multiply(dy, slope);
  return value;
}
template <Activation kind, class P>
  requires(kind == Activation::kRelu)
ATTUNE_INLINE P activate_with_gradient(const P& x, const P& dy, P& dx) {
  const P zero = broadcast<P>(ScalarOf<P>(0)), value = detail::positive_part(x);
  dx = select_less(zero, x, dy, zero);
  return value;
}
/// dy times the derivative at x.
template <Activation kind, class P>
ATTUNE_INLINE P activate_backward(const P& x, const P& dy) {
  P dx;
  activate_with_gradient<kind>(x, dy, dx);
  return dx;
}

namespace detail {

// The loops of the functions below, over whole packets.
template <Activation kind, class Scalar>
[[gnu::noinline]] void activate_packets(int size, const Scalar* x, Scalar* y) {
  using P = Packet<Scalar>;
  for (int i = 0; i < size; i += kLanes<P>) store(y + i, activate<kind>(load<P>(x + i)));
}
template <Activation kind, bool kZeroStays, class Scalar>
[[gnu::noinline]] void activate_packets_backward(int size, const Scalar* x, const Scalar* dy, Scalar* dx) {
  using P = Packet<Scalar>;
  for (int i = 0; i < size; i += kLanes<P>) {
    const P gradient = load<P>(dy + i);
    store(dx + i, unless_zero<kZeroStays>(gradient, activate_backward<kind>(load<P>(x + i), gradient)));
  }
}
template <Activation kind, class Scalar>
[[gnu::noinline]] void activate_packets_with_slopes(int size, Scalar* x, Scalar* y) {
  using P = Packet<Scalar>;
  for (int i = 0; i < size; i += kLanes<P>) {
    P slope;
    store(y + i, activate<kind>(load<P>(x + i), slope));
    store(x + i, slope);
  }
}
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate_packets(int size, const Scalar* gate, const Scalar* up, Scalar* a) {
  using P = Packet<Scalar>;
  for (int i = 0; i < size; i += kLanes<P>) {
    store(a + i, multiply(activate<kind>(load<P>(gate + i)), load<P>(up + i)));
  }
}
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate_packets_backward(int size, const Scalar* da, Scalar* gate, Scalar* up) {
  using P = Packet<Scalar>;
  for (int i = 0; i < size; i += kLanes<P>) {
    const P g = load<P>(gate + i), gradient = load<P>(da + i);
    P d_gate;
    const P value = activate_with_gradient<kind>(g, multiply(gradient, load<P>(up + i)), d_gate);
    store(up + i, multiply(gradient, value));
    store(gate + i, d_gate);
  }
}

}  // namespace detail

/// y = activation(x), for `size` scalars. `y` may be `x`.
template <Activation kind, class Scalar>
[[gnu::noinline]] void activate(int size, const Scalar* x, Scalar* y) {
  in_whole_packets<Scalar>(detail::activate_packets<kind, Scalar>, size, x, y);
}

/// dx = dy ∘ activation′(x). `dx` may be `dy` or `x`. With kZeroStays, dx is zero for a zero dy, whatever x
/// is.
template <Activation kind, bool kZeroStays = false, class Scalar>
[[gnu::noinline]] void activate_backward(int size, const Scalar* x, const Scalar* dy, Scalar* dx) {
  in_whole_packets<Scalar>(detail::activate_packets_backward<kind, kZeroStays, Scalar>, size, x, dy, dx);
}

/// y = activation(x), and x becomes activation′(x), both from one evaluation.
template <Activation kind, class Scalar>
[[gnu::noinline]] void activate_with_slopes(int size, Scalar* x, Scalar* y) {
  in_whole_packets<Scalar>(detail::activate_packets_with_slopes<kind, Scalar>, size, x, y);
}

/// slopes *= dy, element by element: dx from the slopes of activate_with_slopes.
template <class Scalar>
[[gnu::noinline]] void multiply_slopes(int size, const Scalar* dy, Scalar* slopes) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    store(slopes + i, multiply(load<P>(dy + i), load<P>(slopes + i)));
  });
}

/// a = f(gate) ∘ up, for `size` scalars. `a` may be either.
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate(int size, const Scalar* gate, const Scalar* up, Scalar* a) {
  in_whole_packets<Scalar>(detail::gate_packets<kind, Scalar>, size, gate, up, a);
}

/// Backward from da: gate becomes da ∘ up ∘ f′(gate), up becomes da ∘ f(gate).
template <Activation kind, class Scalar>
[[gnu::noinline]] void gate_backward(int size, const Scalar* da, Scalar* gate, Scalar* up) {
  in_whole_packets<Scalar>(detail::gate_packets_backward<kind, Scalar>, size, da, gate, up);
}

#if ATTUNE_CORTEX_M_FPU

namespace detail {

// Functions with assembly for four floats at a time.
template <Activation kind>
using InFours = std::conditional_t<kind == Activation::kGelu, GeluInFours, SiluInFours>;
template <Activation kind, class Scalar>
concept ComputesFours = std::is_same_v<Scalar, float> &&
    (kind == Activation::kGelu || kind == Activation::kSilu);

}  // namespace detail

template <Activation kind, class Scalar>
  requires detail::ComputesFours<kind, Scalar>
[[gnu::noinline]] void activate(int size, const Scalar* x, Scalar* y) {
  detail::activate_in_fours<detail::InFours<kind>>(size, x, y);
}
template <Activation kind, bool kZeroStays = false, class Scalar>
  requires(detail::ComputesFours<kind, Scalar> && !kZeroStays)
[[gnu::noinline]] void activate_backward(int size, const Scalar* x, const Scalar* dy, Scalar* dx) {
  detail::activate_in_fours_backward<detail::InFours<kind>>(size, x, dy, dx);
}
template <Activation kind, class Scalar>
  requires detail::ComputesFours<kind, Scalar>
[[gnu::noinline]] void activate_with_slopes(int size, Scalar* x, Scalar* y) {
  detail::activate_in_fours_with_slopes<detail::InFours<kind>>(size, x, y);
}
template <Activation kind, class Scalar>
  requires(kind == Activation::kSilu && std::is_same_v<Scalar, float>)
[[gnu::noinline]] void gate(int size, const Scalar* gate, const Scalar* up, Scalar* a) {
  detail::gated_silu(size, gate, up, a);
}
template <Activation kind, class Scalar>
  requires detail::ComputesFours<kind, Scalar>
[[gnu::noinline]] void gate_backward(int size, const Scalar* da, Scalar* gate, Scalar* up) {
  detail::gate_in_fours_backward<detail::InFours<kind>>(size, da, gate, up);
}

#if defined(__ARM_FEATURE_DSP)

template <Activation kind, class Scalar>
  requires(kind == Activation::kRelu && std::is_same_v<Scalar, float>)
[[gnu::noinline]] void activate(int size, const Scalar* x, Scalar* y) {
  if (const int fours = size & ~3; fours > 0) {
    detail::relu_in_fours(fours, x, y);
    size -= fours, x += fours, y += fours;
  }
  in_whole_packets<float>(detail::activate_packets<kind, float>, size, x, y);
}
template <Activation kind, bool kZeroStays = false, class Scalar>
  requires(kind == Activation::kRelu && std::is_same_v<Scalar, float> && !kZeroStays)
[[gnu::noinline]] void activate_backward(int size, const Scalar* x, const Scalar* dy, Scalar* dx) {
  if (const int pairs = size & ~1; pairs > 0) {
    detail::relu_backward_in_pairs(pairs, x, dy, dx);
    size -= pairs, x += pairs, dy += pairs, dx += pairs;
  }
  in_whole_packets<float>(detail::activate_packets_backward<kind, false, float>, size, x, dy, dx);
}

#endif

#endif

}  // namespace kernels

}  // namespace ATTUNE_NAMESPACE
