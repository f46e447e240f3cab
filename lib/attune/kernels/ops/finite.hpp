// Checks for infinity and NaN.
#pragma once

#include <concepts>

#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Whether all of `size` scalars are finite. Lanes (simd/lanes.hpp) are not checked: true.
template <class Scalar>
constexpr bool finite(int, const Scalar*) {
  return true;
}
template <std::floating_point Scalar>
[[gnu::noinline]] bool finite(int size, const Scalar* values) {
  // 0·x is 0 for a finite x and NaN otherwise, and a NaN stays in the sum.
  Scalar total = 0;
  int i = 0;
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
  if constexpr (std::is_same_v<Scalar, float>) {
    i = size - size % detail::kManyRegisters;
    if (i > 0) total = detail::zeros_of_many(values, values + i);
  }
#endif
  using Widest = Packet<Scalar>;
  if constexpr (kLanes < Widest >> 1) {
    Widest sums = broadcast<Widest>(Scalar(0));
    for (; i + kLanes<Widest> <= size; i += kLanes<Widest>) {
      sums = add(sums, multiply(load<Widest>(values + i), broadcast<Widest>(Scalar(0))));
    }
    Scalar lanes[std::size_t{kLanes<Widest>}];
    store(lanes, sums);
    for (const Scalar lane : lanes) total += lane;
  }
  for (; i < size; ++i) total = add(total, multiply(values[i], Scalar(0)));
  return total == 0;
}
/// The same for a view with contiguous rows.
template <class View>
  requires(requires(const View& view) { view.data; })
[[nodiscard]] bool finite(const View& view) {
  using Scalar = std::remove_const_t<typename View::Scalar>;
  static_assert(View::col_stride == 1);
  if constexpr (View::row_stride == View::cols) return finite<Scalar>(View::rows * View::cols, view.data);
  for (int i = 0; i < View::rows; ++i) {
    if (!finite<Scalar>(View::cols, view.data + i * View::row_stride)) return false;
  }
  return true;
}

}  // namespace ATTUNE_NAMESPACE::kernels
