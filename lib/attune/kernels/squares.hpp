// Sums of squares: how long is a vector, and is it finite? A square that overflows and a NaN stay in the sum,
// so one pass answers both.
#pragma once

#include <attune/kernels/reduce.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// Σ x² over `size` scalars: of whole blocks of 16 in 8 interleaved lanes, whose halves are added pairwise;
/// then what is left, one by one. The same bits on every target. Infinite or NaN where an x is, and where a
/// square overflows.
template <class Scalar>
[[gnu::noinline]] Scalar sum_of_squares(int size, const Scalar* x) {
  constexpr int kSquareLanes = 8, kBlock = 16;
  const int whole = size & ~(kBlock - 1);
  Scalar total = 0;
#if ATTUNE_CORTEX_M_FPU && !defined(__OPTIMIZE_SIZE__)
  if constexpr (std::is_same_v<Scalar, float>) {
    if (whole > 0) total = detail::squares_of_many(x, x + whole);
  } else
#endif
  {
    using P = Packet<Scalar, kSquareLanes>;
    Scalar lanes[kSquareLanes];
    for (int l = 0; l < kSquareLanes; l += kLanes<P>) {
      P sum = broadcast<P>(Scalar(0));
      for (int i = l; i < whole; i += kSquareLanes) {
        const P value = load<P>(x + i);
        sum = add(sum, multiply(value, value));
      }
      store(lanes + l, sum);
    }
    for (int half = kSquareLanes / 2; half >= 1; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] = add(lanes[l], lanes[l + half]);
    }
    total = lanes[0];
  }
  for (int i = whole; i < size; ++i) total = add(total, multiply(x[i], x[i]));
  return total;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
