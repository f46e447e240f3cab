// Arithmetic that small FPUs lack, in software: double a·b + c with one rounding, and √a.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::kernels {

#if ATTUNE_FUSED && ((defined(__arm__) && !(defined(__ARM_FP) && (__ARM_FP & 8))) || \
                     (defined(__riscv_flen) && __riscv_flen < 64))
namespace detail {

// Without double in the FPU, libm's fma rounds twice. This one rounds once: the sum of the exact terms is
// rounded to odd before the last addition (S. Boldo and G. Melquiond, "Emulation of a FMA and Correctly
// Rounded Sums", 2008). It does not handle subnormal and overflowing intermediate values.
struct ExactSum {
  double rounded, rest;
};
[[gnu::noinline]] inline ExactSum exact_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
[[gnu::noinline]] inline ExactSum exact_product(double a, double b) {
  constexpr double kSplit = 134217729.0;  // 2²⁷ + 1: halves of 26 bits, whose products are exact
  const double a_high = a * kSplit - (a * kSplit - a), a_low = a - a_high;
  const double b_high = b * kSplit - (b * kSplit - b), b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}
[[gnu::noinline]] inline double software_fma(double a, double b, double c) {
  const ExactSum product = exact_product(a, b);
  if (!(product.rest - product.rest == 0)) return a * b + c;
  const ExactSum low = exact_sum(c, product.rest);
  const ExactSum high = exact_sum(product.rounded, low.rounded);
  ExactSum tail = exact_sum(low.rest, high.rest);
  auto bits = std::bit_cast<std::uint64_t>(tail.rounded);
  if (tail.rest != 0 && bits % 2 == 0) {  // inexact and even: step toward the rest
    bits += (tail.rest > 0) == (tail.rounded > 0) ? 1 : ~std::uint64_t{0};
    tail.rounded = std::bit_cast<double>(bits);
  }
  return high.rounded + tail.rounded;
}

}  // namespace detail
inline double double_fma(double a, double b, double c) { return detail::software_fma(a, b, c); }
#else
ATTUNE_INLINE double double_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

namespace detail {

// √a for a type that the FPU cannot take roots of: digit by digit on the mantissa, correctly rounded. Not
// libm's, which keeps errno. No result is subnormal: √ of the smallest number is normal.
template <class Scalar>
[[gnu::noinline]] Scalar software_square_root(Scalar a) {
  using Bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kMantissa = std::numeric_limits<Scalar>::digits - 1;
  constexpr int kBias = std::numeric_limits<Scalar>::max_exponent - 1;
  if (!(a > 0) || a - a != 0) return a < 0 ? std::numeric_limits<Scalar>::quiet_NaN() : a;
  Bits mantissa = std::bit_cast<Bits>(a);
  int exponent = static_cast<int>(mantissa >> kMantissa);
  mantissa &= (Bits{1} << kMantissa) - 1;
  if (exponent == 0) {
    for (exponent = 1; mantissa < (Bits{1} << kMantissa); --exponent) mantissa <<= 1;
  } else {
    mantissa |= Bits{1} << kMantissa;
  }
  exponent -= kBias;
  if (exponent % 2 != 0) {
    mantissa <<= 1;
    --exponent;
  }
  // One bit of the root per iteration, and one more than the mantissa for rounding. There are no ties: an odd
  // root has an odd square.
  Bits root = 0, remainder = 0;
  for (int digit = kMantissa + 1; digit >= 0; --digit) {
    const int position = 2 * digit - (kMantissa + 2);  // the next two bits of mantissa · 2^(kMantissa + 2)
    const Bits two = position >= 0 ? (mantissa >> position) & 3 : position == -1 ? (mantissa << 1) & 3 : 0;
    remainder = remainder << 2 | two;
    const Bits trial = root << 2 | 1;
    root <<= 1;
    if (remainder >= trial) {
      remainder -= trial;
      root |= 1;
    }
  }
  const Bits rounded = (root >> 1) + (root & 1);
  return std::bit_cast<Scalar>((static_cast<Bits>(exponent / 2 + kBias - 1) << kMantissa) + rounded);
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels
