// Our own logistic sigmoid, tanh and normal distribution: the same bits on every target, from e^x and
// correctly rounded operations. For packets and scalars.
#pragma once

#include <array>
#include <utility>

#include <attune/kernels/simd/elementary.hpp>

namespace ATTUNE_NAMESPACE::kernels {

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

// double: q(u) in e^(z²)·erfc(z) = t·q(2t − 1), t = 1/(1 + 0.5 z), z ≥ 0, interpolated at Chebyshev nodes, to
// 5e-17 relative. kNear: g(u) in erf(√2·b) = b + b·g(b² − kErrorFunctionCenter) of b in [−1, 1], the same.
// kTanhNear: g of tanh(√(2/π)·(x + 0.044715·x³)), x = 2·b, around kTanhCenter. All by
// tests/kernels/error_function_coefficients.py.
inline constexpr double kErrorFunctionCenter = 151.0 / 256;
inline constexpr double kTanhCenter = 230.0 / 256;
template <class Scalar>
struct ErrorFunctionCoefficients;
template <>
struct ErrorFunctionCoefficients<float> {
  static constexpr float kLast = 7.5f;  // from here on, Φ(−a) is 0
  static constexpr float kTanhNear[] = {-4.673451260e-4f, -1.888373397e-3f, 1.726693951e-3f,
                                        -1.002173609e-2f, 2.922081095e-2f,  -7.973104666e-2f,
                                        1.906128634e-1f,  -4.048670251e-1f, -6.168636948e-3f};
};
template <>
struct ErrorFunctionCoefficients<double> {
  static constexpr double kLast = 40;
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

// float: Φ(−a) = c₀ + c₁·d + … + c₆·d⁶ of d = a − i/2 in [−¼, ¼], to 1e-9 absolute: row i, interpolated at
// Chebyshev nodes (the same file). Rows have 8 floats for aligned loads. The last one is zero.
inline constexpr int kTailRows = 16, kTailTerms = 7;
struct alignas(32) TailRows {
  float rows[kTailRows][8];
};
inline constexpr TailRows kTail = {{
    {5.000000000e-1f, -3.989422837e-1f, 2.123189441e-7f, 6.648527313e-2f, 5.858097295e-5f, -1.031932883e-2f,
     1.016644577e-3f},
    {3.085375387e-1f, -3.520653181e-1f, 8.801632245e-2f, 4.400705468e-2f, -2.016922578e-2f, -4.548594850e-3f,
     3.033448636e-3f},
    {1.586552539e-1f, -2.419707448e-1f, 1.209853591e-1f, 2.595188796e-6f, -2.016381746e-2f, 3.949575595e-3f,
     2.003311181e-3f},
    {6.680720127e-2f, -1.295176105e-1f, 9.713820137e-2f, -2.698093485e-2f, -6.071728916e-3f, 5.807979209e-3f,
     -6.387255577e-4f},
    {2.275013195e-2f, -5.399096347e-2f, 5.399096958e-2f, -2.699587325e-2f, 4.498854590e-3f, 2.262197582e-3f,
     -1.337202989e-3f},
    {6.209665326e-3f, -1.752829353e-2f, 2.191037491e-2f, -1.533815471e-2f, 5.934150255e-3f, -6.378574671e-4f,
     -5.164281533e-4f},
    {1.349898032e-3f, -4.431846140e-3f, 6.647771461e-3f, -5.909421908e-3f, 3.324034393e-3f, -1.098675854e-3f,
     1.060524080e-4f},
    {2.326290790e-4f, -8.726832490e-4f, 1.527194446e-3f, -1.636208984e-3f, 1.177247132e-3f, -5.808962926e-4f,
     1.794567687e-4f},
    {3.167124183e-5f, -1.338309050e-4f, 2.676605542e-4f, -3.344886061e-4f, 2.899523260e-4f, -1.845706642e-4f,
     8.295151370e-5f},
    {3.397673125e-6f, -1.598400102e-5f, 3.596349910e-5f, -5.124791547e-5f, 5.168696656e-5f, -3.989812576e-5f,
     2.256793084e-5f},
    {2.866515719e-7f, -1.486778376e-6f, 3.716823702e-6f, -5.939351978e-6f, 6.810943752e-6f, -6.162155355e-6f,
     4.128350474e-6f},
    {1.898956247e-8f, -1.077065423e-7f, 2.961729980e-7f, -5.238831821e-7f, 6.719613393e-7f, -6.974283529e-7f,
     5.350341748e-7f},
    {9.865876450e-10f, -6.076841821e-9f, 1.822821980e-8f, -3.532018817e-8f, 5.005303461e-8f, -5.872616036e-8f,
     5.047574993e-8f},
    {4.016000584e-11f, -2.670302570e-10f, 8.676560150e-10f, -1.825800736e-9f, 2.831393757e-9f,
     -3.715699104e-9f, 3.523403982e-9f},
    {1.279812544e-12f, -9.138999229e-12f, 3.197470614e-11f, -7.253212087e-11f, 1.221509998e-10f,
     -1.778834665e-10f, 1.839460121e-10f},
}};

// z = a + kTailRound has the row of a in its lowest bits: it is a, rounded to a multiple of ½.
inline constexpr float kTailRound = 4194304.0f;  // 2²²

#if defined(__AVX2__)
struct alignas(64) TailColumns {
  float columns[kTailTerms][kTailRows];
};
inline constexpr TailColumns kTailColumns = [] {
  TailColumns transposed{};
  for (int i = 0; i < kTailTerms * kTailRows; ++i)
    transposed.columns[i / kTailRows][i % kTailRows] = kTail.rows[i % kTailRows][i / kTailRows];
  return transposed;
}();
#endif

// The row of z.
ATTUNE_INLINE const float* tail_row(std::uint32_t bits) { return kTail.rows[bits % kTailRows]; }

// The coefficients of each lane's row.
template <class P>
requires kIsScalar<P> ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  const float* const from = tail_row(std::bit_cast<std::uint32_t>(z));
  ATTUNE_UNROLL for (int k = 0; k < kTailTerms; ++k) c[k] = from[k];
}
#if ATTUNE_MVE
template <class P>
  requires(kLanes<P> == 4)
ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  const uint32x4_t first = vshlq_n_u32(vandq_u32(vreinterpretq_u32_f32(z), vdupq_n_u32(kTailRows - 1)), 3);
  ATTUNE_UNROLL for (int k = 0; k < kTailTerms; ++k) {
    c[k] = vldrwq_gather_shifted_offset_f32(kTail.rows[0] + k, first);
  }
}
#else
template <class P>
  requires(kLanes<P> == 4)
ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  std::uint32_t bits[4];
  std::memcpy(bits, &z, sizeof z);
  ATTUNE_UNROLL for (int lane = 0; lane < 4; ++lane) {
    c[lane] = load<P>(tail_row(bits[lane]));
    c[lane + 4] = load<P>(tail_row(bits[lane]) + 4);
  }
  transpose_four(c);
  transpose_four(c + 4);
}
#endif
#if defined(__AVX2__)
template <class P>
  requires(kLanes<P> == 8)
ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  const __m256i index = _mm256_castps_si256(z);
  const __m256 high = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));  // bit 3 as a sign
  ATTUNE_UNROLL for (int k = kTailTerms - 1; k >= 0; --k) {
    const float* const column = kTailColumns.columns[k];
    c[k] = _mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_load_ps(column), index),
                            _mm256_permutevar8x32_ps(_mm256_load_ps(column + 8), index), high);
  }
}
#endif
#if defined(__AVX512F__)
template <class P>
  requires(kLanes<P> == 16)
ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  ATTUNE_UNROLL for (int k = 0; k < kTailTerms; ++k) {
    c[k] =
        _mm512_maskz_permutexvar_ps(0xFFFF, _mm512_castps_si512(z), _mm512_load_ps(kTailColumns.columns[k]));
  }
}
#endif
template <class P>
ATTUNE_INLINE void tail_coefficients(const P& z, P (&c)[kTailTerms + 1]) {
  constexpr int lanes = kLanes<P>;
  Array<std::uint32_t, lanes> bits;
  std::memcpy(bits, &z, sizeof z);
  for (int k = 0; k < kTailTerms; ++k) {
    Array<float, lanes> column;
    for (int lane = 0; lane < lanes; ++lane) column[lane] = tail_row(bits[lane])[k];
    c[k] = load<P>(column);
  }
}

// erfc(√2·b) for b in [1, kLast/2].
template <class P>
ATTUNE_INLINE P error_function_complement(const P& b) {
  using Scalar = Real<ScalarOf<P>>;
  const P one = broadcast<P>(Scalar(1));
  const P z = multiply(b, broadcast<P>(Scalar(1.41421356237309504880)));
  const P t = divide(one, multiply_add(z, broadcast<P>(Scalar(0.5)), one));
  const P scaled =
      multiply(t, polynomial(subtract(add(t, t), one), ErrorFunctionCoefficients<Scalar>::kComplement));
  return multiply(exponential(multiply(multiply(b, b), broadcast<P>(Scalar(-2)))), scaled);
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

// |x|, at most the first one with Φ(−|x|) = 0. NaN stays NaN.
template <class P>
ATTUNE_INLINE P bounded_magnitude(const P& x) {
  const P size = magnitude(x), last = broadcast<P>(ErrorFunctionCoefficients<Real<ScalarOf<P>>>::kLast);
  return select_less(last, size, last, size);
}

}  // namespace detail

/// Φ(−|x|) = ½·erfc(|x|/√2), with the normal distribution Φ. To 3e-8 (double: 1e-16), absolute. NaN stays
/// NaN.
template <class P>
ATTUNE_INLINE P normal_tail(const P& x) {
  using Scalar = Real<ScalarOf<P>>;
  const P a = detail::bounded_magnitude(x);
  if constexpr (std::is_same_v<Scalar, float>) {
    const P rounding = broadcast<P>(detail::kTailRound), z = add(a, rounding),
            d = subtract(a, subtract(z, rounding));
    P c[detail::kTailTerms + 1];
    detail::tail_coefficients(z, c);
    P tail = c[detail::kTailTerms - 1];
    ATTUNE_UNROLL for (int k = detail::kTailTerms - 2; k >= 0; --k) tail = multiply_add(tail, d, c[k]);
    return tail;
  } else {
    using C = detail::ErrorFunctionCoefficients<Scalar>;
    const P half = broadcast<P>(Scalar(0.5)), one = broadcast<P>(Scalar(1)), b = multiply(a, half);
    const auto near = [&] {
      return subtract(one, detail::odd_polynomial(b, C::kNear, detail::kErrorFunctionCenter));
    };
    const auto far = [&] { return detail::error_function_complement(b); };
    if constexpr (kIsScalar<P>) {
      return multiply(half, b < 1 ? near() : far());
    } else {
      return multiply(half, select_less(b, one, near(), far()));
    }
  }
}

namespace detail {

template <class Scalar>
inline constexpr auto kDensityAtZero = Scalar(0.39894228040143267794);  // 1/√(2π)

}  // namespace detail

/// Φ′(x) = e^(−x²/2)/√(2π). NaN stays NaN.
template <class P>
ATTUNE_INLINE P normal_density(const P& x) {
  using Constant = Real<ScalarOf<P>>;
  const P exponent = multiply(multiply(x, x), broadcast<P>(Constant(0.5)));
  return multiply(exponential(detail::negate(exponent)), broadcast<P>(detail::kDensityAtZero<Constant>));
}

/// x·Φ(x) = max(x, 0) − |x|·Φ(−|x|), from the result of normal_tail(). NaN stays NaN.
template <class P>
ATTUNE_INLINE P gelu(const P& x, const P& tail) {
  const P zero = broadcast<P>(Real<ScalarOf<P>>(0));
  return subtract_product(select_less(zero, x, x, zero), detail::bounded_magnitude(x), tail);
}

/// The derivative Φ(x) + x·Φ′(x), from the result of normal_tail() and Φ′(x): g = Φ(−|x|) − |x|·Φ′(x) for x <
/// 0, and 1 − g from 0 on.
template <class P>
ATTUNE_INLINE P gelu_slope(const P& x, const P& tail, const P& density) {
  using Scalar = Real<ScalarOf<P>>;
  const P below = subtract_product(tail, magnitude(x), density);
  return select_less(x, broadcast<P>(Scalar(0)), below, subtract(broadcast<P>(Scalar(1)), below));
}

}  // namespace ATTUNE_NAMESPACE::kernels
