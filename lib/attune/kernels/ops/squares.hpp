// Sums of squares. An overflowing square and a NaN stay in the sum, so one pass gives the length of a vector
// and shows whether it is finite.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/reduce.hpp>

#if defined(__SOFTFP__)  // arithmetic is a library call, so nothing stays in registers
#define ATTUNE_UNROLL_SQUARES
#else
#define ATTUNE_UNROLL_SQUARES ATTUNE_UNROLL
#endif

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

inline constexpr int kSquareLanes = 16;

// Σ x² of whole blocks.
template <class Scalar>
ATTUNE_INLINE Scalar squares_of_blocks(int whole, const Scalar* x) {
  using P = Packet<Scalar, kSquareLanes>;
  constexpr int kPackets = kSquareLanes / kLanes<P>;
  P sums[std::size_t{kPackets}];
  ATTUNE_UNROLL_SQUARES for (int p = 0; p < kPackets; ++p) sums[p] = broadcast<P>(Scalar(0));
  for (int i = 0; i < whole; i += kSquareLanes) {
    ATTUNE_UNROLL_SQUARES for (int p = 0; p < kPackets; ++p) {
      const P value = load<P>(x + i + p * kLanes<P>);
      sums[p] = add(sums[p], multiply(value, value));
    }
  }
  Scalar lanes[kSquareLanes];
  ATTUNE_UNROLL_SQUARES for (int p = 0; p < kPackets; ++p) store(lanes + p * kLanes<P>, sums[p]);
  ATTUNE_UNROLL_SQUARES for (int half = kSquareLanes / 2; half >= 1; half /= 2) {
    ATTUNE_UNROLL_SQUARES for (int l = 0; l < half; ++l) lanes[l] = add(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}
#if ATTUNE_CORTEX_M_FPU
ATTUNE_INLINE float squares_of_blocks(int whole, const float* x) {
  return whole > 0 ? squares_of_many(x, x + whole) : 0;
}
#endif

}  // namespace detail

/// Σ x² over `size` scalars. Whole blocks of 16 go to 16 interleaved lanes, whose halves are added pairwise;
/// the remainder is added one by one. The same bits on every target. Infinite or NaN if an x is, or if a
/// square overflows.
template <class Scalar>
[[gnu::noinline]] Scalar sum_of_squares(int size, const Scalar* x) {
  const int whole = size & ~(detail::kSquareLanes - 1);
  Scalar total = detail::squares_of_blocks(whole, x);
  for (int i = whole; i < size; ++i) total = add(total, multiply(x[i], x[i]));
  return total;
}

/// Σ (scale·x)² over a vector that comes in portions, in rising order. With kRestLast the bits equal
/// sum_of_squares(), and the scale is ignored. Otherwise they equal sum() (ops/reduce.hpp).
template <class Scalar>
struct PartialSquares {
  Scalar lanes[kSumLanes];
  Scalar total;  // behind the last portion

  /// Adds elements first … first + count − 1 of x[size].
  template <bool kRestLast>
  void add(const Scalar* x, int size, int first, int count, Scalar scale) {
    constexpr int kLanes = kSumLanes;
    const int whole = kRestLast ? size - size % kLanes : size, end = first + count;
    const auto square = [&](int i) ATTUNE_INLINE_LAMBDA {
      const Scalar scaled = kRestLast ? x[i] : multiply(x[i], scale);
      return multiply(scaled, scaled);
    };
    if (first == 0) fill_n(lanes, kLanes, Scalar(0));
    int i = first;
#if !ATTUNE_FOR_SIZE
    if (i % kLanes == 0) {
      Scalar sums[kLanes];  // stay in registers
      copy_n(lanes, kLanes, sums);
      for (; i + kLanes <= end && i + kLanes <= whole; i += kLanes) {
        ATTUNE_UNROLL_SQUARES for (int l = 0; l < kLanes; ++l) sums[l] = kernels::add(sums[l], square(i + l));
      }
      copy_n(sums, kLanes, lanes);
    }
#endif
    for (; i < end && i < whole; ++i) lanes[i % kLanes] = kernels::add(lanes[i % kLanes], square(i));
    if (end >= whole && (first < whole || first == 0)) total = detail::sum_of_lanes(lanes);
    for (; i < end; ++i) total = kernels::add(total, square(i));
  }
};

}  // namespace ATTUNE_NAMESPACE::kernels

#undef ATTUNE_UNROLL_SQUARES
