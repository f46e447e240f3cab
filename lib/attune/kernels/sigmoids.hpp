// The logistic sigmoid and the normal distribution of our own: the same bits on every target, built from e^x
// and correctly rounded operations. Packets and scalars.
#pragma once

#include <iterator>
#include <utility>

#include <attune/kernels/elementary.hpp>
#include <attune/kernels/exponential_mve.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

namespace detail {

// c_0·x^(n−1) + … + c_(n−1).
template <class P, class Scalar, std::size_t kCount>
ATTUNE_INLINE P polynomial(const P& x, const Scalar (&coefficients)[kCount]) {
  P p = broadcast<P>(coefficients[0]);
  [&]<std::size_t... kPower>(std::index_sequence<kPower...>) ATTUNE_INLINE_LAMBDA {
    ((p = multiply_add(p, x, broadcast<P>(coefficients[kPower + 1]))), ...);
  }
  (std::make_index_sequence<kCount - 1>{});
  return p;
}

template <class P>
ATTUNE_INLINE P negate(const P& x) {
  return multiply(x, broadcast<P>(ScalarOf<P>(-1)));
}

// q(u) in e^(z²)·erfc(z) = t·q(2t − 1), t = 1/(1 + 0.5 z), z ≥ 0: interpolated at Chebyshev nodes by
// tests/kernels/error_function_coefficients.py, to 3e-8 and 5e-17 relative.
template <class Scalar>
struct ErrorFunctionCoefficients;
template <>
struct ErrorFunctionCoefficients<float> {
  static constexpr float kComplement[] = {-1.97733429e-6f, 4.20878746e-5f, -3.11484371e-5f, -2.99199669e-4f,
                                          4.25197107e-4f,  1.52899732e-3f, -3.24104592e-3f, -1.07515693e-2f,
                                          1.82212370e-2f,  1.39735726e-1f, 3.43580341e-1f,  5.10791357e-1f};
};
template <>
struct ErrorFunctionCoefficients<double> {
  static constexpr double kComplement[] = {
      1.2565872268694162e-9,  -1.0739706490605829e-9, -1.0077813697051110e-8, 1.3309828411704202e-8,
      2.9995796909332926e-8,  -6.9915991258107684e-8, -3.2879636230668126e-9, 1.7908279015125073e-7,
      -2.8384033369549108e-7, -1.4173148256799138e-8, 9.9968105979067109e-7,  -1.8147502308396911e-6,
      -5.6220173892931585e-7, 8.0577441873480920e-6,  -1.0848266170054759e-5, -1.7073740273626262e-5,
      7.2235398100233223e-5,  -1.7185840159673633e-5, -3.3153675453694101e-4, 4.1864804431780766e-4,
      1.5453060296562169e-3,  -3.2395925346550141e-3, -1.0755330944743212e-2, 1.8221115753461417e-2,
      1.3973604627802736e-1,  3.4358034220690511e-1,  5.1079135262101149e-1};
};

// e^(z²)·erfc(z) of z ≥ 0.
template <class P>
ATTUNE_INLINE P scaled_complement(const P& z) {
  using Constant = Real<ScalarOf<P>>;
  const P one = broadcast<P>(Constant(1));
  const P t = divide(one, multiply_add(z, broadcast<P>(Constant(0.5)), one));
  const P u = subtract(add(t, t), one);
  return multiply(t, polynomial(u, ErrorFunctionCoefficients<Constant>::kComplement));
}

}  // namespace detail

/// 1/(1 + e^(−x)); `complement` becomes 1/(1 + eˣ) = 1 − sigmoid(x), without cancellation. Both to 3 ulp;
/// 0 where e^(−|x|) is (elementary.hpp). NaN stays NaN.
template <class P>
ATTUNE_INLINE P sigmoid(const P& x, P& complement) {
  using Scalar = ScalarOf<P>;
  const P zero = broadcast<P>(Scalar(0));
  const P one = broadcast<P>(Scalar(1));
  const P decay = exponential(detail::negate(magnitude(x)));
  const P large = divide(one, add(one, decay));
  const P small = multiply(decay, large);
  complement = select_less(x, zero, large, small);
  return select_less(x, zero, small, large);
}

/// Φ(x) = ½·(1 + erf(x/√2)), the normal distribution, without cancellation for x < 0, to 2e-7 (double:
/// 4e-16), absolute; `density` becomes Φ′(x) = e^(−x²/2)/√(2π). NaN stays NaN.
template <class P>
ATTUNE_INLINE P normal_distribution(const P& x, P& density) {
  using Constant = Real<ScalarOf<P>>;
  const P half = broadcast<P>(Constant(0.5));
  const P z = multiply(magnitude(x), broadcast<P>(Constant(0.70710678118654752440)));
  const P decay = exponential(detail::negate(multiply(multiply(x, x), half)));
  const P tail = multiply(multiply(half, decay), detail::scaled_complement(z));
  density = multiply(decay, broadcast<P>(Constant(0.39894228040143267794)));
  return select_less(x, broadcast<P>(Constant(0)), tail, subtract(broadcast<P>(Constant(1)), tail));
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
