// Our own exp, log and cos: the same bits on every target, without libm's state.
#pragma once

#include <array>
#include <utility>

#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// e^r on |r| ≤ ln2/2. float: the minimax polynomial of the Cephes library (S. Moshier, expf). double: Taylor
// up to r¹³/13!, whose remainder is below 5e-18.
template <class Scalar>
struct ExpCoefficients;
template <>
struct ExpCoefficients<float> {
  static constexpr float kLog2E = 1.44269504088896341f;
  static constexpr float kLn2High = 0.693359375f;
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kRound =
      12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer, kept in the low bits
  static constexpr float kLowest = -87.0f;  // below, e^x becomes 0; every result is a normal number
  static constexpr float kPolynomial[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                          4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kExponentBias = 127;
};
template <>
struct ExpCoefficients<double> {
  static constexpr double kLog2E = 1.4426950408889634074;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 · 2⁵²
  static constexpr double kLowest = -708.0;
  static constexpr double kPolynomial[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                           1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                           1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kExponentBias = 1023;
};

// 2^n of each lane from z = n + kRound, by shifting n into the exponent.
template <class P>
ATTUNE_INLINE P power_of_two(const P& z) {
  using Scalar = ScalarOf<P>;
  using C = ExpCoefficients<Scalar>;
  using Bits [[gnu::vector_size(sizeof(P))]] = typename C::Bits;
  return std::bit_cast<P>((std::bit_cast<Bits>(z) + C::kExponentBias) << C::kMantissaBits);
}

// e^r as a polynomial, and z = n + kRound, for x = n·ln2 + r.
template <class P>
ATTUNE_INLINE P reduced_exponential(const P& x, P& z, ScalarOf<P> one) {
  using Scalar = ScalarOf<P>;
  using C = ExpCoefficients<Scalar>;
  const P rounding = broadcast<P>(C::kRound);
  z = multiply_add(x, broadcast<P>(C::kLog2E), rounding);
  const P minus_n = subtract(rounding, z);
  const P r =
      multiply_add(minus_n, broadcast<P>(C::kLn2Low), multiply_add(minus_n, broadcast<P>(C::kLn2High), x));
  P p = broadcast<P>(C::kPolynomial[0]);
  [&]<std::size_t... kPower>(std::index_sequence<kPower...>) ATTUNE_INLINE_LAMBDA {
    ((p = multiply_add(p, r, broadcast<P>(C::kPolynomial[kPower + 1]))), ...);
  }
  (std::make_index_sequence<std::size(C::kPolynomial) - 1>{});
  return add(multiply_add(multiply(p, r), r, r), broadcast<P>(one));
}

// The bits of e^x. A branch costs less than a selection. The result is a normal number, so multiplication by
// 2ⁿ is an addition to the exponent of e^r, and the bits are stored from integer registers.
template <class Scalar>
ATTUNE_INLINE auto exponential_bits(Scalar x, Scalar one = 1) {
  using C = ExpCoefficients<Scalar>;
  using Bits = typename C::Bits;
  if (x >= C::kLowest) [[likely]] {
    Scalar z;
    const Scalar p = reduced_exponential(x, z, one);
    return std::bit_cast<Bits>(p) + (std::bit_cast<Bits>(z) << C::kMantissaBits);
  }
  return x < C::kLowest ? Bits(0) : std::bit_cast<Bits>(x);
}

// e^x from e^r and z of reduced_exponential().
template <class P>
ATTUNE_INLINE P limited_exponential(const P& x, const P& e_r, const P& z) {
  using Scalar = ScalarOf<P>;
  return select_less(x, broadcast<P>(ExpCoefficients<Scalar>::kLowest), broadcast<P>(Scalar(0)),
                     multiply(e_r, power_of_two(z)));
}

}  // namespace detail

/// e^x for x ≤ 88 (double: 709), to 1 ulp on [-87, 0] (1.02 in `fused`; double: [-708, 0]); 0 below and for
/// −∞; NaN stays NaN.
template <class P>
ATTUNE_INLINE P exponential(const P& x) {
  if constexpr (kIsScalar<P>) {
    return std::bit_cast<P>(detail::exponential_bits(x));
  } else {
    P z;
    const P e_r = detail::reduced_exponential(x, z, ScalarOf<P>(1));
    return detail::limited_exponential(x, e_r, z);
  }
}

#if ATTUNE_MVE && ATTUNE_FUSED
// Coefficients are in integer registers, which MVE's instructions accept; its eight vector registers cannot
// hold them.
ATTUNE_INLINE float32x4_t exponential(const float32x4_t& x) {
  using C = detail::ExpCoefficients<float>;
  const float32x4_t z = vfmaq_n_f32(vdupq_n_f32(C::kRound), x, C::kLog2E);
  const float32x4_t n = vsubq_n_f32(z, C::kRound);
  const float32x4_t r = vfmaq_n_f32(vfmaq_n_f32(x, n, -C::kLn2High), n, -C::kLn2Low);
  float32x4_t p = vfmasq_n_f32(vdupq_n_f32(C::kPolynomial[0]), r, C::kPolynomial[1]);
  [&]<std::size_t... kPower>(std::index_sequence<kPower...>) ATTUNE_INLINE_LAMBDA {
    ((p = vfmasq_n_f32(p, r, C::kPolynomial[kPower + 2])), ...);
  }
  (std::make_index_sequence<std::size(C::kPolynomial) - 2>{});
  p = vaddq_n_f32(vfmaq_f32(r, vmulq_f32(p, r), r), 1.0f);
  const uint32x4_t bits =
      vaddq_u32(vreinterpretq_u32_f32(p), vshlq_n_u32(vreinterpretq_u32_f32(z), C::kMantissaBits));
  return select_less(x, vdupq_n_f32(C::kLowest), vdupq_n_f32(0), vreinterpretq_f32_u32(bits));
}
#endif

/// The same for `count` packets in place. If all numbers are between −85 and 2 (double: −707), no limits are
/// checked, and n is added to the exponent of e^r by integer units instead of a multiplication.
template <int count, class P>
ATTUNE_INLINE void exponentials(P* x) {
  if constexpr (kLanes<P> == 1) {
    ATTUNE_UNROLL for (int i = 0; i < count; ++i) x[i] = exponential(x[i]);
  } else {
    using Scalar = ScalarOf<P>;
    using C = detail::ExpCoefficients<Scalar>;
    using Bits [[gnu::vector_size(sizeof(P))]] = typename C::Bits;
    // n from 3 − bias to 3: bias + 1 values, a power of two, all above kLowest.
    constexpr auto kMin = std::bit_cast<typename C::Bits>(C::kRound) + 3 - C::kExponentBias;
    Array<P, count> e_r, z;
    Bits outside{};
    ATTUNE_UNROLL for (int i = 0; i < count; ++i) {
      e_r[i] = detail::reduced_exponential(x[i], z[i], Scalar(1));
      outside |= std::bit_cast<Bits>(z[i]) - kMin;
    }
    if (any_bit(outside & ~C::kExponentBias)) [[unlikely]] {
      ATTUNE_UNROLL for (int i = 0; i < count; ++i) x[i] = detail::limited_exponential(x[i], e_r[i], z[i]);
    } else {
      ATTUNE_UNROLL for (int i = 0; i < count; ++i) {
        x[i] =
            std::bit_cast<P>(std::bit_cast<Bits>(e_r[i]) + (std::bit_cast<Bits>(z[i]) << C::kMantissaBits));
      }
    }
  }
}

/// ln x for a positive normal number, to 2 ulp. x = 2ᵏ·m with m in [√½, √2); ln m = 2·atanh(s), s =
/// (m−1)/(m+1).
template <class Scalar>
inline Scalar logarithm(Scalar x) {
  using C = detail::ExpCoefficients<Scalar>;
  using Bits = typename C::Bits;
  constexpr Bits kSqrtHalf = std::bit_cast<Bits>(static_cast<Scalar>(0.70710678118654752440));
  const Bits offset = std::bit_cast<Bits>(x) - kSqrtHalf;
  const Bits exponent = offset >> C::kMantissaBits;
  const Scalar m = std::bit_cast<Scalar>(std::bit_cast<Bits>(x) - (exponent << C::kMantissaBits));
  // The exponent is small, so it fits an int after a shift back below zero.
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - C::kMantissaBits - 1);
  const auto k = static_cast<Scalar>(static_cast<int>(exponent) - static_cast<int>((exponent & kSign) << 1));
  const Scalar f = m - 1;
  const Scalar s = f / (m + 1);
  const Scalar s2 = s * s;
  constexpr int kTerms = std::is_same_v<Scalar, float> ? 5 : 11;
  Scalar p = 0;
  for (int i = kTerms; i >= 1; --i) p = multiply_add(p, s2, Scalar(2) / static_cast<Scalar>(2 * i + 1));
  const Scalar ln_m = multiply_add(p * s2, s, 2 * s);
  return multiply_add(k, C::kLn2High, multiply_add(k, C::kLn2Low, ln_m));
}

/// cos(π·x) for x in [0, 1], to 3e-7 (float) or 1e-15 (double), absolute: 1 − 2·sin²(πx/2).
template <class Scalar>
inline Scalar cosine_pi(Scalar x) {
  const bool mirrored = x > Scalar(0.5);
  const Scalar t = (mirrored ? 1 - x : x) * static_cast<Scalar>(1.57079632679489661923);  // [0, π/4]
  const Scalar t2 = t * t;
  constexpr int kTerms = std::is_same_v<Scalar, float> ? 5 : 9;
  Scalar p = 1;  // sin(t)/t = 1 − t²/(2·3)·(1 − t²/(4·5)·(…))
  for (int i = kTerms; i >= 1; --i)
    p = subtract_product(Scalar(1), t2 / static_cast<Scalar>(2 * i * (2 * i + 1)), p);
  const Scalar sine = t * p;
  const Scalar cosine = 1 - 2 * sine * sine;
  return mirrored ? -cosine : cosine;
}

}  // namespace ATTUNE_NAMESPACE::kernels
