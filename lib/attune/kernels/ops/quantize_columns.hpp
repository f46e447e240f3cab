// Quantizes weights: a scale max|w| / 127 for each column of W, and the nearest multiples of it.
//
// The integers equal quantize_int8(), which divides by the scale. Here a product with the inverse of
// the scale is rounded, except near the middle between two integers, where the product could fall on the
// wrong side. There the division decides.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/quantized.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// Quotients by a smaller scale, which is a rounded subnormal, can exceed 127.
inline constexpr float kMinScale = (std::numeric_limits<float>::min)();

// The scale of a column and its inverse.
struct ColumnScale {
  float scale, inverse;
};
/// From the bits of the largest magnitude, times two. With the inverse NaN, every number is near the middle.
ATTUNE_INLINE ColumnScale column_scale(std::uint32_t twice_largest) {
  const float scale = int8_scale(std::bit_cast<float>(twice_largest >> 1));
  return {scale, scale < kMinScale ? std::numeric_limits<float>::quiet_NaN() : 1 / scale};
}
ATTUNE_INLINE std::uint32_t twice_magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) << 1;  // without the sign
}

// value/scale + ½, to 1/512, in units of 1/256. The second lowest byte is the quotient's integer, unless the
// lowest one is 0 or 255.
ATTUNE_INLINE std::uint32_t fixed_quotient(float value, const ColumnScale& column) {
  return std::bit_cast<std::uint32_t>(add(multiply(value, column.inverse), 0x1.8p15f + 0.5f));
}
ATTUNE_INLINE bool is_near_middle(std::uint32_t fixed) { return ((fixed + 1) & 0xFE) == 0; }
// The same with the integer of the division.
[[gnu::noinline, gnu::cold]] inline std::uint32_t divided(float value, const ColumnScale& column) {
  return static_cast<std::uint32_t>(quantize_int8(value, column.scale).value) << 8;
}

/// Quantizes two columns that stand side by side to pairs, with `step` bytes from 16 terms to the next 16.
template <class Number>
[[gnu::noinline]] void quantize_pair(const Number* from, int stride, int length, std::int8_t* to, int step,
                                     float* scales) {
  std::uint32_t largest[2] = {};
  for (int k = 0; k < length; ++k) {
    for (int j = 0; j < 2; ++j) {
      largest[j] = larger(largest[j], twice_magnitude_bits(from[k * stride + j]));
    }
  }
  const ColumnScale even = column_scale(largest[0]), odd = column_scale(largest[1]);
  scales[0] = even.scale, scales[1] = odd.scale;
  for (; length > 0; length -= 16, to += step) {
    std::int8_t* pair_at = to;
    for (int i = smaller(length, 16); i > 0; --i, from += stride, pair_at += 2) {
      std::uint32_t first = fixed_quotient(from[0], even), second = fixed_quotient(from[1], odd);
      if (is_near_middle(first)) [[unlikely]]
        first = divided(from[0], even);
      if (is_near_middle(second)) [[unlikely]]
        second = divided(from[1], odd);
      const auto pair = static_cast<std::uint16_t>(
          (second & ~0xFFu) + static_cast<std::uint32_t>(static_cast<std::int8_t>(first >> 8 & 0xFF)));
      std::memcpy(pair_at, &pair, sizeof pair);
    }
  }
}

// Columns of a group (packed_int8.hpp).
template <Int8Order order>
inline constexpr int kGroupColumns = order == Int8Order::kEights ? 8 : 16;

/// Quantizes the columns of a group, which stand side by side, in vectors of several columns. Four terms of a
/// column are four bytes side by side.
template <Int8Order order, class P>
[[gnu::noinline]] void quantize_group(const float* from, int stride, int length, std::int8_t* to,
                                      float* scales) {
  constexpr int kWidth = kLanes<P>;
  constexpr bool kEights = order == Int8Order::kEights;
  using Packed =
      PackedInt8<16, kGroupColumns<order>, order>;  // in a group, places do not depend on the depth
  using Bits = Vector<std::uint32_t, kWidth>;
  for (int col = 0; col < kGroupColumns<order>; col += kWidth) {
    P largest = broadcast<P>(0.0f);
    for (int k = 0; k < length; ++k) {
      const P size = magnitude(load<P>(from + k * stride + col));
      largest = select_less(largest, size, size, largest);
    }
    const P scale = divide(largest, broadcast<P>(float{Int8::kLargest}));
    store(scales + col, scale);
    const P divisor = select_less(scale, broadcast<P>(kMinScale),
                                  broadcast<P>(std::numeric_limits<float>::infinity()), scale);
    for (int first = 0; first < length; first += 4) {
      Bits four{};
      for (int k = first; k < smaller(first + 4, length); ++k) {
        const P quotient = divide(load<P>(from + k * stride + col), divisor);
        four |= (std::bit_cast<Bits>(add(quotient, broadcast<P>(0x1.8p23f))) & 0xFF) << 8 * (k - first);
      }
      std::int8_t* const at = to + Packed::place(first, col);
      if constexpr (kEights) {
        std::uint32_t columns[std::size_t{kWidth}];
        std::memcpy(columns, &four, sizeof four);
        for (int lane = 0; lane < kWidth; ++lane) std::memcpy(at + 8 * lane, &columns[lane], 4);
      } else {
        four ^= 0x80808080u;  // + 128
        std::memcpy(at, &four, sizeof four);
      }
    }
  }
  for (int col = 0; col < kGroupColumns<order>; ++col) {
    if (scales[col] == 0 || scales[col] >= kMinScale) continue;
    for (int k = 0; k < length; ++k) {
      const int integer = quantize_int8(from[k * stride + col], scales[col]).value;
      to[Packed::place(k, col)] = static_cast<std::int8_t>((kEights ? integer : integer + 128) & 0xFF);
    }
  }
}

}  // namespace detail

/// Quantizes `length` finite numbers that are `stride` apart. Returns the scale.
template <class Number>
[[nodiscard, gnu::noinline]] float quantize_vector(const Number* from, int stride, int length,
                                                   std::int8_t* to) {
  std::uint32_t largest = 0;
  for (int i = 0; i < length; ++i) largest = larger(largest, detail::twice_magnitude_bits(from[i * stride]));
  const detail::ColumnScale column = detail::column_scale(largest);
  for (int i = 0; i < length; ++i, from += stride) {
    std::uint32_t fixed = detail::fixed_quotient(*from, column);
    if (detail::is_near_middle(fixed)) [[unlikely]]
      fixed = detail::divided(*from, column);
    to[i] = static_cast<std::int8_t>(fixed >> 8 & 0xFF);
  }
  return column.scale;
}

/// Quantizes the first columns of W[length, cols], finite numbers in rows that are `stride` apart, to packed
/// integers, and returns how many. The rest is fewer than a group of the order, or all of them for other
/// numbers than floats. Bytes beside the integers are left alone.
template <class Packed, class Number>
[[nodiscard]] int quantize_columns(const Number* from, int stride, int length, int cols, std::int8_t* to,
                                   float* scales) {
  if constexpr (Packed::kOrder == Int8Order::kColumns) {
    for (int col = 0; col < cols; ++col) {
      scales[col] = quantize_vector(from + col, stride, length, to + Packed::place(0, col));
    }
    return cols;
  } else if constexpr (Packed::kOrder == Int8Order::kColumnPairs) {
    const int even = cols / 2 * 2;
    for (int col = 0; col < even; col += 2) {
      detail::quantize_pair(from + col, stride, length, to + Packed::place(0, col), 16 * Packed::kCols,
                            scales + col);
    }
    return even;
  } else if constexpr (std::is_same_v<Number, float>) {
    constexpr int kColumns = detail::kGroupColumns<Packed::kOrder>;
    const int whole = cols / kColumns * kColumns;
    for (int col = 0; col < whole; col += kColumns) {
      detail::quantize_group<Packed::kOrder, Packet<float, kColumns>>(
          from + col, stride, length, to + Packed::place(0, col), scales + col);
    }
    return whole;
  } else {
    return 0;
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
