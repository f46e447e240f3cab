// Our own logistic sigmoid, tanh and normal distribution: the same bits on every target, from e^x and
// correctly rounded operations. For packets and scalars.
#pragma once

#include <iterator>
#include <utility>

#include <attune/kernels/simd/elementary.hpp>

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
  return multiply(x, broadcast<P>(Real<ScalarOf<P>>(-1)));
}

// float: r(b) in ⁸√erfc(√2·b) = 1 + b·r(b), minimax, so that b·erfc has an absolute error of 5e-9. An eighth
// root falls slowly enough for few terms; the last b makes it zero, in either arithmetic. double: q(u) in
// e^(z²)·erfc(z) = t·q(2t − 1), t = 1/(1 + 0.5 z), z ≥ 0, interpolated at Chebyshev nodes, to 5e-17 relative.
// kNear: g(u) in erf(√2·b) = b + b·g(b² − kErrorFunctionCenter) of b in [−1, 1], the same. kTanhNear: g of
// tanh(√(2/π)·(x + 0.044715·x³)), x = 2·b, around kTanhCenter. All by
// tests/kernels/error_function_coefficients.py.
inline constexpr double kErrorFunctionCenter = 151.0 / 256;
inline constexpr double kTanhCenter = 230.0 / 256;
template <class Scalar>
struct ErrorFunctionCoefficients;
template <>
struct ErrorFunctionCoefficients<float> {
  static constexpr float kRoot[] = {-8.04476098e-5f, 1.02805690e-3f,  -4.15759626e-3f, 1.12173280e-3f,
                                    2.63142034e-2f,  -5.89465275e-3f, -1.39262802e-1f, -1.99471042e-1f};
  static constexpr float kLast = 4.332625f;
  static constexpr float kNear[] = {2.496406760e-4f,  -9.724259355e-4f, 3.950599471e-3f,
                                    -1.444151693e-2f, 4.580000088e-2f,  -1.243014166e-1f,
                                    2.841817129e-1f,  -5.504965783e-1f, 1.399131119e-1f};
  static constexpr float kTanhNear[] = {-4.673451260e-4f, -1.888373397e-3f, 1.726693951e-3f,
                                        -1.002173609e-2f, 2.922081095e-2f,  -7.973104666e-2f,
                                        1.906128634e-1f,  -4.048670251e-1f, -6.168636948e-3f};
};
template <>
struct ErrorFunctionCoefficients<double> {
  static constexpr double kLast = 20;
  static constexpr double kNear[] = {
      -5.11600648871127940e-10, 3.43568042504830840e-9, -2.59540375970904751e-8, 1.83737534668567558e-7,
      -1.20726109644339257e-6,  7.33706330295769850e-6, -4.09798304440534142e-5, 2.08786533784590430e-4,
      -9.61836329059213297e-4,  3.96481470430905645e-3, -1.44421123061479587e-2, 4.57983722252158114e-2,
      -1.24301425054281841e-1,  2.84181774353906173e-1, -5.50496577843203057e-1, 1.39913111506084486e-1};
  static constexpr double kTanhNear[] = {
      -2.57299235920936787e-7, -1.60095346066825297e-6, -3.45945206871096703e-6, -6.40293427172106806e-6,
      -2.95928137602564431e-6, -9.52142641485213096e-6, 1.11853865765193916e-5,  -2.16232191154779962e-5,
      1.10873311366209620e-5,  1.09141470391558484e-4,  -6.77026435995138693e-4, 2.77869509998224033e-3,
      -9.58217846375523555e-3, 2.92989173266817254e-2,  -7.97304905244023828e-2, 1.90611766982344849e-1,
      -4.04867059551737300e-1, -6.16863460306103449e-3};
  static constexpr double kComplement[] = {
      1.2565872268694162e-9,  -1.0739706490605829e-9, -1.0077813697051110e-8, 1.3309828411704202e-8,
      2.9995796909332926e-8,  -6.9915991258107684e-8, -3.2879636230668126e-9, 1.7908279015125073e-7,
      -2.8384033369549108e-7, -1.4173148256799138e-8, 9.9968105979067109e-7,  -1.8147502308396911e-6,
      -5.6220173892931585e-7, 8.0577441873480920e-6,  -1.0848266170054759e-5, -1.7073740273626262e-5,
      7.2235398100233223e-5,  -1.7185840159673633e-5, -3.3153675453694101e-4, 4.1864804431780766e-4,
      1.5453060296562169e-3,  -3.2395925346550141e-3, -1.0755330944743212e-2, 1.8221115753461417e-2,
      1.3973604627802736e-1,  3.4358034220690511e-1,  5.1079135262101149e-1};
};

// erfc(√2·b) for b in [1, kLast].
template <class P>
ATTUNE_INLINE P error_function_complement(const P& b) {
  using Scalar = Real<ScalarOf<P>>;
  using C = ErrorFunctionCoefficients<Scalar>;
  const P one = broadcast<P>(Scalar(1));
  if constexpr (std::is_same_v<Scalar, float>) {
    const P eighth = multiply_add(b, polynomial(b, C::kRoot), one);
    const P fourth = multiply(eighth, eighth), square_root = multiply(fourth, fourth);
    return multiply(square_root, square_root);
  } else {
    const P z = multiply(b, broadcast<P>(Scalar(1.41421356237309504880)));
    const P t = divide(one, multiply_add(z, broadcast<P>(Scalar(0.5)), one));
    const P scaled = multiply(t, polynomial(subtract(add(t, t), one), C::kComplement));
    return multiply(exponential(multiply(multiply(b, b), broadcast<P>(Scalar(-2)))), scaled);
  }
}

}  // namespace detail

/// 1/(1 + e^(−x)); `complement` becomes 1/(1 + eˣ) = 1 − sigmoid(x), without cancellation. Both to 3 ulp;
/// 0 where e^(−|x|) is (simd/elementary.hpp). NaN stays NaN.
template <class P>
ATTUNE_INLINE P sigmoid(const P& x, P& complement) {
  using Scalar = Real<ScalarOf<P>>;
  const P one = broadcast<P>(Scalar(1));
  const P lowest = broadcast<P>(Scalar(detail::ExpCoefficients<Scalar>::kLowest));  // e^(−x) overflows below
  const P decay = exponential(detail::negate(x));
  const P gate = divide(one, add(one, decay));
  complement = select_less(x, lowest, one, multiply(decay, gate));
  return select_less(x, lowest, broadcast<P>(Scalar(0)), gate);
}

/// tanh(x) to 4 ulp. ±1 for ±∞; NaN stays NaN.
template <class P>
ATTUNE_INLINE P hyperbolic_tangent(const P& x) {
  using Scalar = ScalarOf<P>;
  using Constant = Real<Scalar>;
  // Below a half, where 1 − e^(−2|x|) would cancel, the seventh convergent of Lambert's continued fraction
  // x/(1 + x²/(3 + x²/(5 + …))), to 2e-16 relative.
  constexpr Constant kAbove[] = {1, 378, 17'325, 135'135};
  constexpr Constant kBelow[] = {28, 3'150, 62'370, 135'135};
  const P zero = broadcast<P>(Scalar(Constant(0)));
  const P one = broadcast<P>(Scalar(Constant(1)));
  const P half = broadcast<P>(Scalar(Constant(0.5)));
  const P z = magnitude(x);
  const P square = multiply(z, z);
  const P decay = exponential(detail::negate(add(z, z)));
  const P above = select_less(z, half, multiply(z, detail::polynomial(square, kAbove)), subtract(one, decay));
  const P below = select_less(z, half, detail::polynomial(square, kBelow), add(one, decay));
  const P tangent = divide(above, below);
  return select_less(x, zero, detail::negate(tangent), tangent);
}

namespace detail {

// b + b·g(b² − center).
template <class P, class Scalar, std::size_t kCount>
ATTUNE_INLINE P odd_polynomial(const P& b, const Scalar (&g)[kCount], double center) {
  const P u = multiply_add(b, b, broadcast<P>(static_cast<Scalar>(-center)));
  return multiply_add(b, polynomial(u, g), b);
}

// 2·Φ(2·half) for |half| < 1, else 2·Φ(−2·|half|).
template <class P>
ATTUNE_INLINE P twice_normal_near(const P& half) {
  using Scalar = Real<ScalarOf<P>>;
  const P erf = odd_polynomial(half, ErrorFunctionCoefficients<Scalar>::kNear, kErrorFunctionCenter);
  return add(erf, broadcast<P>(Scalar(1)));
}
template <class P>
ATTUNE_INLINE P twice_normal_far(const P& half) {
  const P size = magnitude(half), last = broadcast<P>(ErrorFunctionCoefficients<Real<ScalarOf<P>>>::kLast);
  return error_function_complement(select_less(size, last, size, last));
}

}  // namespace detail

/// 2·Φ(x) = 1 + erf(x/√2), with the normal distribution Φ, for x < 2. From 2 on, 2·Φ(−x), as 2·Φ(x) is too
/// near two. To 1.2e-7 (double: 2.3e-16), absolute. Any number for NaN.
template <class P>
ATTUNE_INLINE P twice_normal(const P& x) {
  using Scalar = Real<ScalarOf<P>>;
  const P half = multiply(x, broadcast<P>(Scalar(0.5)));
  if constexpr (kIsScalar<P>) {
    return magnitude(half) < 1 ? detail::twice_normal_near(half) : detail::twice_normal_far(half);
  } else {
    return select_less(magnitude(half), broadcast<P>(Scalar(1)), detail::twice_normal_near(half),
                       detail::twice_normal_far(half));
  }
}

namespace detail {

template <class P>
ATTUNE_INLINE P density_of_decay(const P& decay) {
  return multiply(decay, broadcast<P>(Real<ScalarOf<P>>(0.39894228040143267794)));
}

}  // namespace detail

/// Φ′(x) = e^(−x²/2)/√(2π). NaN stays NaN.
template <class P>
ATTUNE_INLINE P normal_density(const P& x) {
  const P exponent = multiply(multiply(x, x), broadcast<P>(Real<ScalarOf<P>>(0.5)));
  return detail::density_of_decay(exponential(detail::negate(exponent)));
}

/// x·Φ(x), from the result of twice_normal(). NaN stays NaN.
template <class P>
ATTUNE_INLINE P gelu(const P& x, const P& twice) {
  using Scalar = Real<ScalarOf<P>>;
  constexpr Scalar kLast = detail::ErrorFunctionCoefficients<Scalar>::kLast;
  const P half = multiply(x, broadcast<P>(Scalar(0.5)));
  const P lowest = broadcast<P>(-kLast), highest = broadcast<P>(kLast);
  const P bounded = select_less(half, lowest, lowest, select_less(highest, half, highest, half));
  return select_less(half, broadcast<P>(Scalar(1)), multiply(bounded, twice),
                     subtract_product(x, bounded, twice));
}

/// The derivative Φ(x) + x·Φ′(x), from the result of twice_normal() and Φ′(x).
template <class P>
ATTUNE_INLINE P gelu_slope(const P& x, const P& twice, const P& density) {
  using Scalar = Real<ScalarOf<P>>;
  const P once = multiply(twice, broadcast<P>(Scalar(0.5)));
  const P distribution =
      select_less(x, broadcast<P>(Scalar(2)), once, subtract(broadcast<P>(Scalar(1)), once));
  return multiply_add(x, density, distribution);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
