// The order in which integer products read a weight matrix.
//
//   W[depth, cols] of integers −127 … 127, chosen by the target:
//
//   kColumns        [cols][depth]                    one column after the other
//   kColumnPairs    [depth / 16][cols / 2][16][2]    256·w₁ + w₀ in 16 bits: two columns in one register of
//                                                    the DSP extension (Cortex-M4, M7, M33)
//   kColumnGroups   [cols / 16][depth / 4][16][4]    w + 128, for VPDPBUSD; SSE2 and AVX2 widen it
//   kEights         [cols / 8][depth / 8][8][8]      two columns of eight k in a register of NEON (64-bit
//   Arm)
//
// Zeros fill depths, and columns of pairs, groups and eights, up to a multiple of 16.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// The orders at the top of this file.
enum class Int8Order { kColumns, kColumnPairs, kColumnGroups, kEights };
/// The order of this target.
inline constexpr Int8Order kInt8Order =
#if defined(__x86_64__) || defined(__i386__)
    Int8Order::kColumnGroups;
#elif defined(__aarch64__)
    Int8Order::kEights;
#elif defined(__ARM_FEATURE_DSP) && !ATTUNE_MVE && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    Int8Order::kColumnPairs;
#else
    Int8Order::kColumns;
#endif

namespace detail {

/// Sizes of a product with a run-time number of rows, and strides of A and C.
struct Int8Shape {
  int depth, cols;
  int a_row, a_col, c_row;
};

}  // namespace detail

/// The positions of the integers of W[depth, cols]. `Bytes` is an array of std::int8_t, or a pointer to them.
template <int depth, int cols, Int8Order order = kInt8Order>
struct PackedInt8 {
  static constexpr Int8Order kOrder = order;
  static constexpr int kDepth = (depth + 15) / 16 * 16;  // filled to a multiple of 16
  static constexpr int kCols = order == Int8Order::kColumns ? cols : (cols + 15) / 16 * 16;
  static constexpr int kBytes = kCols * kDepth;

  /// Sets all integers to zero.
  template <class Bytes>
  static constexpr void clear(Bytes& bytes) {
    for (int i = 0; i < kBytes; ++i) {
      element(bytes, i) = static_cast<std::int8_t>(order == Int8Order::kColumnGroups ? -128 : 0);
    }
  }
  /// Sets W(k, col), which must be zero, to `value` in −127 … 127.
  template <class Bytes>
  static constexpr void set(Bytes& bytes, int k, int col, int value) {
    if constexpr (order == Int8Order::kColumnPairs) {
      const int first = place(k, col - col % 2);
      const int pair = halves(bytes, first) + (col % 2 == 0 ? value : 256 * value);
      element(bytes, first) = static_cast<std::int8_t>(pair & 0xFF);
      element(bytes, first + 1) = static_cast<std::int8_t>(pair >> 8);
    } else if constexpr (order == Int8Order::kColumnGroups) {
      element(bytes, place(k, col)) = static_cast<std::int8_t>((value + 128) & 0xFF);
    } else {
      element(bytes, place(k, col)) = static_cast<std::int8_t>(value);
    }
  }
  /// W(k, col).
  template <class Bytes>
  static constexpr int at(const Bytes& bytes, int k, int col) {
    if constexpr (order == Int8Order::kColumnPairs) {
      const int first = place(k, col - col % 2), even = element(bytes, first);
      return col % 2 == 0 ? even : (halves(bytes, first) - even) / 256;
    } else if constexpr (order == Int8Order::kColumnGroups) {
      return static_cast<std::uint8_t>(element(bytes, place(k, col))) - 128;
    } else {
      return element(bytes, place(k, col));
    }
  }

  /// The index of the byte of W(k, col).
  static constexpr int place(int k, int col) {
    if constexpr (order == Int8Order::kColumnPairs) {
      return k / 16 * 16 * kCols + col / 2 * 32 + k % 16 * 2 + col % 2;
    } else if constexpr (order == Int8Order::kColumnGroups) {
      return col / 16 * 16 * kDepth + k / 4 * 64 + col % 16 * 4 + k % 4;
    } else if constexpr (order == Int8Order::kEights) {
      return col / 8 * 8 * kDepth + k / 8 * 64 + col % 8 * 8 + k % 8;
    } else {
      return col * kDepth + k;
    }
  }

 private:
  template <class Bytes>
  static constexpr auto& element(Bytes& bytes, int i) {
    return bytes[static_cast<std::size_t>(i)];
  }
  template <class Bytes>
  static constexpr int halves(const Bytes& bytes, int first) {
    return 256 * element(bytes, first + 1) + static_cast<std::uint8_t>(element(bytes, first));
  }
};

/// B of an integer product: some rows of W[depth, all columns] in packed order, or of its transpose. W is
/// integers times a scale per column. The first `terms` of B's rows count.
template <int kDepth, int kColumns, int kRows, int kCols, bool kTransposed,
          class Terms = std::integral_constant<int, kRows>>
struct PackedInt8View {
  using Scalar = float;
  static constexpr bool transposed = kTransposed;
  static constexpr bool folds = kTransposed;  // whether scales belong to A's columns, or to C's
  using Packed = PackedInt8<kDepth, kColumns>;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;

  const std::int8_t* bytes;
  const float* scale;  // one per column of W
  int first = 0;       // first row of W
  [[no_unique_address]] Terms terms = {};

  /// The integer of B(k, col).
  [[nodiscard]] constexpr int integer(int k, int col) const {
    return kTransposed ? Packed::at(bytes, first + col, k) : Packed::at(bytes, first + k, col);
  }
  /// The factors of B's scales in A's column k, and in C's column `col`.
  [[nodiscard]] ATTUNE_INLINE constexpr float folded(float a, int k) const {
    return kTransposed ? a * scale[k] : a;
  }
  [[nodiscard]] ATTUNE_INLINE constexpr float scaled(float row_scale, int col) const {
    return kTransposed ? row_scale : row_scale * scale[col];
  }

  [[nodiscard]] constexpr auto transpose() const {
    return PackedInt8View<kDepth, kColumns, kCols, kRows, !kTransposed>{bytes, scale, first};
  }
  /// Columns of the transpose, which are rows of W.
  template <int kCount>
  [[nodiscard]] constexpr auto columns(int from) const {
    static_assert(kTransposed);
    return PackedInt8View<kDepth, kColumns, kRows, kCount, true>{bytes, scale, first + from};
  }
};

/// The same matrix, not transposed, with a scale per row.
template <int kDepth, int kColumns, class Terms>
struct FoldedInt8View : PackedInt8View<kDepth, kColumns, kDepth, kColumns, false, Terms> {
  static constexpr bool folds = true;
};

}  // namespace ATTUNE_NAMESPACE::kernels
