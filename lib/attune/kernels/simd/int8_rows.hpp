// Quantizes rows of floats to 8-bit integers, with a scale per row.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// A row ≈ q·scale, and q is the row times `inverse`, rounded.
struct RowScale {
  float scale, inverse;
};

/// The scale of a row, from the bits of its largest magnitude: |q| ≤ 127. Magnitudes below 2⁻¹⁰⁰ count as
/// zeros, so no target meets a subnormal scale. A row with a NaN or an infinity has the scale NaN, and so do
/// its products.
[[nodiscard]] ATTUNE_INLINE RowScale row_scale(std::uint32_t largest) {
  constexpr std::uint32_t kMin = std::bit_cast<std::uint32_t>(0x1p-100f), kInfinity = 0x7F800000u;
  if (largest < kMin) return {0, 0};
  if (largest >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float magnitude = std::bit_cast<float>(largest);
  return {magnitude / 127.0f, 127.0f / magnitude};
}

/// The bits of a number without its sign.
[[nodiscard]] ATTUNE_INLINE std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
}

/// The nearest integer, ties to even, for |x| ≤ 127.5: the low bits of x + 1.5·2²³.
[[nodiscard]] ATTUNE_INLINE std::int8_t round_to_int8(float x) {
  return static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(add(x, 0x1.8p23f)) & 0xFFu);
}

/// Quantizes value(i) for i in [0, length).
template <class Value>
ATTUNE_INLINE float quantize_row(int length, const Value& value, std::int8_t* to) {
  std::uint32_t largest = 0;
  for (int i = 0; i < length; ++i) {
    const std::uint32_t magnitude = magnitude_bits(value(i));
    largest = magnitude > largest ? magnitude : largest;
  }
  const RowScale row = row_scale(largest);
  for (int i = 0; i < length; ++i) to[i] = round_to_int8(multiply(value(i), row.inverse));
  return row.scale;
}

}  // namespace ATTUNE_NAMESPACE::kernels
