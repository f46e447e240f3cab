// Transposed copies: adjacent panels of a transposed B, and whole matrices.
#pragma once

#include <utility>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/target.hpp>

namespace ATTUNE_NAMESPACE::kernels::detail {

// From each pair of quads (a0 a1 a2 a3), (b0 b1 b2 b3): a[kFirst], b[kFirst], a[kSecond], b[kSecond], or
// pairwise.
template <int kFirst, int kSecond, bool kPairs, class P>
ATTUNE_INLINE P mix_quads(const P& a, const P& b) {
  constexpr int kWidth = kLanes<P>;
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) ATTUNE_INLINE_LAMBDA {
    constexpr auto kSource = [](int lane) {
      const int quad = lane / 4 * 4;
      const int place = lane % 4;
      if (kPairs) return quad + (place < 2 ? 0 : kWidth) + (place % 2 == 0 ? kFirst : kSecond);
      return quad + (place % 2 == 0 ? 0 : kWidth) + (place < 2 ? kFirst : kSecond);
    };
    return P(__builtin_shufflevector(a, b, kSource(kLane)...));
  }
  (std::make_integer_sequence<int, kWidth>{});
}

// to[k][n] = from[n][k] for the lanes n of a packet and k < kDepth. Rows of `from` are kFromRow apart, rows
// of `to` kToRow. `from` is a B. Transposes four k at a time: 4×4 blocks within the quads of four packets.
template <class P, int kDepth, int kToRow, int kFromRow, class Scalar, class B>
ATTUNE_INLINE void transpose_panel(const B& from, Scalar* to) {
  constexpr int kWidth = kLanes<P>;
  constexpr int kByFours = std::is_same_v<Scalar, float> && kWidth >= 4 ? kDepth / 4 * 4 : 0;
  const auto* elements = elements_of(from);
  const auto put = [&](int k, const P& of_k)
                       ATTUNE_INLINE_LAMBDA { store(to + k * kToRow, scaled_row(from, k, of_k)); };
  if constexpr (kByFours > 0) {
    for (int k = 0; k < kByFours; k += 4) {
      const P row0 = load_quads<P, 4 * kFromRow>(elements + k);
      const P row1 = load_quads<P, 4 * kFromRow>(elements + k + kFromRow);
      const P row2 = load_quads<P, 4 * kFromRow>(elements + k + 2 * kFromRow);
      const P row3 = load_quads<P, 4 * kFromRow>(elements + k + 3 * kFromRow);
      const P low01 = mix_quads<0, 1, false>(row0, row1), high01 = mix_quads<2, 3, false>(row0, row1);
      const P low23 = mix_quads<0, 1, false>(row2, row3), high23 = mix_quads<2, 3, false>(row2, row3);
      put(k, mix_quads<0, 1, true>(low01, low23));
      put(k + 1, mix_quads<2, 3, true>(low01, low23));
      put(k + 2, mix_quads<0, 1, true>(high01, high23));
      put(k + 3, mix_quads<2, 3, true>(high01, high23));
    }
  }
  for (int k = kByFours; k < kDepth; ++k) {
    for (int n = 0; n < kWidth; ++n) {
      to[k * kToRow + n] = load_row<Scalar>(from, n * kFromRow + k, k);
    }
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

namespace ATTUNE_NAMESPACE::kernels {

/// Whether products copy a transposed B before they read it. If several products read it, one copy pays.
template <class Scalar>
inline constexpr bool kCopiesTransposed = kLanes<Packet<Scalar>> > 1 && !detail::kHasMve;

/// to[cols, rows] = fromᵀ for two MatrixViews with contiguous rows: the first `rows` rows of `from`, and some
/// more to fill a packet. They may not overlap.
template <class From, class To>
ATTUNE_INLINE void transpose(const From& from, const To& to, int rows = From::rows) {
  using Scalar = typename To::Scalar;
  static_assert(From::rows == To::cols && From::cols == To::rows && From::col_stride == 1 &&
                To::col_stride == 1);
  constexpr int kWidth = kLanes<Packet<Scalar>>;
  const int whole = smaller(From::rows, (rows + kWidth - 1) / kWidth * kWidth);
  for_each_packet<Scalar>(whole, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const Scalar* first = from.data + i * From::row_stride;
    detail::transpose_panel<P, From::cols, To::row_stride, From::row_stride>(first, to.data + i);
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
