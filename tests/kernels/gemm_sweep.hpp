// Products over all sizes up to 33, where every tile, panel and rest of a packet occurs. Each is an
// instantiation of its own, so sizes are combined sparsely.
#pragma once

#include <utility>

#include "kernels/gemm_check.hpp"

namespace check {

template <Layout layout, int... kSizes>
void sweep_each(std::integer_sequence<int, kSizes...>) {
  (check_product<float, layout, kSizes + 1, 5, 3>(), ...);
  (check_product<float, layout, 3, kSizes + 1, 4>(), ...);
  (check_product<float, layout, 2, 3, kSizes + 1>(), ...);
}
/// Every M, every N and every K of 1 … 33, the other two fixed.
template <Layout layout>
void sweep_each() {
  sweep_each<layout>(std::make_integer_sequence<int, 33>{});
}

inline constexpr int kSweepSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
inline constexpr int kSweepCount = 14;

template <Layout layout, int... kIndex>
void sweep_together(std::integer_sequence<int, kIndex...>) {
  (check_product<float, layout, kSweepSizes[kIndex], kSweepSizes[(kIndex * 5 + 3) % kSweepCount],
                 kSweepSizes[(kIndex * 3 + 1) % kSweepCount]>(),
   ...);
  (check_product<float, layout, kSweepSizes[(kIndex * 3 + 5) % kSweepCount], kSweepSizes[kIndex],
                 kSweepSizes[(kIndex * 5 + 2) % kSweepCount], 7>(),
   ...);
  (check_product<double, layout, kSweepSizes[(kIndex * 5 + 1) % kSweepCount],
                 kSweepSizes[(kIndex * 3 + 2) % kSweepCount], kSweepSizes[kIndex]>(),
   ...);
}
/// Sizes below, at and above every packet width in all three places.
template <Layout layout>
void sweep_together() {
  sweep_together<layout>(std::make_integer_sequence<int, kSweepCount>{});
}

}  // namespace check
