// Rows of floats in 8 or 16 bits, and back.
//
//   8 bits:   q = round(x·127/m) with m = max|x| of the row,   x ≈ q·(m/127)      (simd/int8_rows.hpp)
//   16 bits:  the nearest bfloat16
//
// Rounding is to nearest, ties to even. A row of zeros stays zeros. A number that is not finite stays not
// finite; in 8 bits its whole row becomes NaN.
#pragma once

#include <cstdint>

#include <attune/kernels/quantized.hpp>
#include <attune/kernels/simd/int8_rows.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Packs x[length]. Returns the row's scale.
[[nodiscard, gnu::noinline]] inline float pack_row(int length, const float* x, Int8* to) {
  static_assert(sizeof(Int8) == sizeof(std::int8_t));
  return quantize_row(
      length, [x](int i) ATTUNE_INLINE_LAMBDA { return x[i]; }, reinterpret_cast<std::int8_t*>(to));
}
/// The same in 16 bits, which need no scale.
[[gnu::noinline]] inline void pack_row(int length, const float* x, Bfloat16* to) {
  for (int i = 0; i < length; ++i) to[i] = round_to_bf16(x[i]);
}

/// Unpacks a row to x[length].
[[gnu::noinline]] inline void unpack_row(int length, const Int8* from, float scale, float* x) {
  for (int i = 0; i < length; ++i) x[i] = multiply(static_cast<float>(from[i].value), scale);
}
[[gnu::noinline]] inline void unpack_row(int length, const Bfloat16* from, float* x) {
  for (int i = 0; i < length; ++i) x[i] = dequantize(from[i]);
}

}  // namespace ATTUNE_NAMESPACE::kernels
