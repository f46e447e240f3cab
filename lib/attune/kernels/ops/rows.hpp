// Passes over the rows of a matrix: bias gradient, scaling, copies with a stride.
#pragma once

#include <concepts>
#include <cstring>
#include <type_traits>

#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/portable/replace_packets.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// sums[1, kCols] += Σ_rows x[kRows, kCols]: the gradient of a bias. Rows are added in rising order. `rows`
/// is the number of used rows, at least one.
template <int kRows, int kCols, int kRowStride, class Scalar, class Rows = std::integral_constant<int, kRows>>
[[gnu::noinline]] void add_column_sums(const Scalar* x, Scalar* sums, Rows rows = {}) {
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P column = load<P>(x + j);
    for (int i = 1; i < rows; ++i) column = add(column, load<P>(x + i * kRowStride + j));
    store(sums + j, add(load<P>(sums + j), column));
  });
}
#if ATTUNE_CORTEX_M_FPU
template <int kRows, int kCols, int kRowStride, std::same_as<float> Scalar,
          class Rows = std::integral_constant<int, kRows>>
  requires(kCols >= 8)
[[gnu::noinline]] void add_column_sums(const Scalar* x, Scalar* sums, Rows rows = {}) {
  constexpr int kEights = kCols / 8 * 8;
  detail::add_sums_of_eights(rows, kEights, x, sums, 4 * kRowStride);
  if constexpr (kEights < kCols) {
    add_column_sums<kRows, kCols - kEights, kRowStride>(x + kEights, sums + kEights, rows);
  }
}
#endif

namespace detail {

template <int kSize, class Scalar>
ATTUNE_INLINE void scale_row(Scalar* x, Scalar alpha) {
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
  if constexpr (std::is_same_v<Scalar, float> && kSize >= kManyRegisters) {
    constexpr int kWhole = kSize / kManyRegisters * kManyRegisters;
    for (int i = 0; i < kWhole; i += kManyRegisters) {
      ManyRegisters many = load_many(x + i);
      ATTUNE_UNROLL for (float& lane : many.lane) lane = multiply(lane, alpha);
      store_many(x + i, many);
    }
    if constexpr (kWhole < kSize) scale_row<kSize - kWhole>(x + kWhole, alpha);
    return;
  }
#endif
  if constexpr (kLanes<Packet<Scalar>> == 1 || ATTUNE_MVE) {
    for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      store(x + i, multiply(load<P>(x + i), broadcast<P>(alpha)));
    });
  } else {
    replace_packets<kSize>(x, [alpha]<int count, class P>(P* some) ATTUNE_INLINE_LAMBDA {
      ATTUNE_UNROLL for (int i = 0; i < count; ++i) some[i] = multiply(some[i], broadcast<P>(alpha));
    });
  }
}

}  // namespace detail

/// x *= alpha.
template <int kSize, class Scalar>
[[gnu::noinline]] void scale(Scalar* x, Scalar alpha) {
  detail::scale_row<kSize>(x, alpha);
}

/// Copies contiguous rows of `kCols` scalars to rows that are `to_stride` apart. They may not overlap.
template <int kCols, class Scalar>
[[gnu::noinline]] void spread_rows(int rows, const Scalar* from, Scalar* to, int to_stride) {
  for (int i = 0; i < rows; ++i, from += kCols, to += to_stride) {
    std::memcpy(static_cast<void*>(to), from, sizeof(Scalar) * kCols);
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
