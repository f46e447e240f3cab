// Numbers of 8 and 16 bits for weights. Each one is exactly a float.
//
// 8-bit integers come with a scale; Bfloat16 and Float16 are floats with fewer bits. Rounding is to nearest,
// ties to even.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// An 8-bit integer, to be multiplied by the scale of its output.
struct Int8 {
  static constexpr bool kScaled = true;
  static constexpr int kLargest = 127;  // symmetric: −128 is never written, but can be read
  std::int8_t value;                    // times the scale of its output
};
/// The upper half of a float. Converts to float exactly; an assigned number is rounded to the nearest.
struct Bfloat16 {
  static constexpr bool kScaled = false;
  std::uint16_t bits;  // of the number, in memory

  /// The number, exactly.
  constexpr operator float() const;
  /// Rounds a number to the nearest one of 16 bits.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr Bfloat16& operator=(Number value);
};
/// IEEE 754 binary16.
struct Float16 {
  static constexpr bool kScaled = false;
  std::uint16_t bits;  // of the number, in memory
};

/// Converts binary16 (half precision) to float.
[[nodiscard]] constexpr float dequantize_f16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, fraction = half & 0x3FFu;
  const std::uint32_t exponent = half >> 10 & 0x1Fu;
  if (exponent == 0) {  // fraction · 2⁻²⁴
    const auto magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
    return std::bit_cast<float>(sign | magnitude);
  }
  const std::uint32_t biased = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}
/// Converts bfloat16 to float.
[[nodiscard]] constexpr float dequantize_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[nodiscard]] constexpr float dequantize(Int8 element) { return static_cast<float>(element.value); }
[[nodiscard]] constexpr float dequantize(Bfloat16 element) { return dequantize_bf16(element.bits); }
[[nodiscard]] constexpr float dequantize(Float16 element) { return dequantize_f16(element.bits); }

/// A float that rounds to the same bf16 and binary16 as `value`. It is truncated, and its last bit stands for
/// all bits behind it: round to odd (Boldo and Melquiond, "Emulation of a FMA and Correctly Rounded Sums:
/// Proved Algorithms Using Rounding to Odd", 2008). Rounded twice to nearest, ties would be wrong.
[[nodiscard]] constexpr float round_to_odd(double value) {
  constexpr float kLargest = (std::numeric_limits<float>::max)();  // is odd
  if (value > static_cast<double>(kLargest)) return kLargest;
  if (value < -static_cast<double>(kLargest)) return -kLargest;
  const auto nearest = static_cast<float>(value);
  const double difference = value - static_cast<double>(nearest);
  if (difference == 0 || value != value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((difference < 0) != (value < 0)) --bits;  // it was rounded away from zero
  return std::bit_cast<float>(bits | 1u);
}
/// The same of a float, which is itself.
[[nodiscard]] constexpr float round_to_odd(float value) { return value; }

/// The nearest bfloat16; infinity beyond the largest one. NaN stays NaN.
[[nodiscard]] constexpr Bfloat16 round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}
constexpr Bfloat16::operator float() const { return dequantize_bf16(bits); }
template <class Number>
  requires std::is_arithmetic_v<Number>
constexpr Bfloat16& Bfloat16::operator=(Number value) {
  using Exact = std::conditional_t<std::is_same_v<Number, float>, float, double>;
  return *this = round_to_bf16(round_to_odd(static_cast<Exact>(value)));
}

/// The type that an element of a tensor converts to in computations: float for Bfloat16, else itself.
template <class Element>
using NumberOf = std::conditional_t<std::is_same_v<Element, Bfloat16>, float, Element>;

/// The nearest binary16; infinity from 65520 on. NaN stays NaN.
[[nodiscard]] constexpr Float16 round_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  constexpr std::uint32_t kMinNormal = (127u - 14u) << 23, kInfinity = 0x7F800000u;
  std::uint32_t half = 0;
  if (magnitude > kInfinity) {
    half = 0x7E00u;
  } else if (magnitude >= std::bit_cast<std::uint32_t>(65520.0f)) {
    half = 0x7C00u;
  } else if (magnitude >= kMinNormal) {
    half = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - ((127u - 15u) << 23)) >> 13;
  } else {  // multiples of 2⁻²⁴, the last bit of ½'s mantissa
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
           std::bit_cast<std::uint32_t>(0.5f);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

/// The scale of numbers up to `largest`: largest / 127, so that they use the whole range of Int8.
template <class Scalar>
[[nodiscard]] constexpr Scalar int8_scale(Scalar largest) {
  return largest / Scalar(Int8::kLargest);
}
/// The nearest multiple of a scale. A scale of 0 gives 0, and so does NaN.
template <class Scalar>
[[nodiscard]] constexpr Int8 quantize_int8(Scalar value, Scalar scale) {
  if (scale == 0) return {0};
  // Sums with kRound are integers.
  constexpr Scalar kRound = Scalar(1.5) / std::numeric_limits<Scalar>::epsilon();
  constexpr Scalar kLargest = Int8::kLargest;
  const Scalar quotient = value / scale;  // can exceed 127 if the scale was rounded as a subnormal
  if (quotient >= kLargest) return {Int8::kLargest};
  if (quotient <= -kLargest) return {-Int8::kLargest};
  if (quotient != quotient) return {0};
  return {static_cast<std::int8_t>((quotient + kRound) - kRound)};
}

}  // namespace ATTUNE_NAMESPACE
