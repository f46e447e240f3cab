// The sum at the end of a residual branch (He et al., "Deep Residual Learning for Image Recognition", 2016),
// and of gradients.
#pragma once

#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// sum = x + y, for `size` scalars. `sum` may be x or y.
template <class Scalar>
[[gnu::noinline]] void add(int size, const Scalar* x, const Scalar* y, Scalar* sum) {
  int first = 0;
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float>) {
    first = size & -8;
    if (first > 0) detail::add_eights(first, x, y, sum);
  }
#endif
  const auto add_packet = [&]<class P>(int i)
                              ATTUNE_INLINE_LAMBDA { store(sum + i, add(load<P>(x + i), load<P>(y + i))); };
  for_each_packet<Scalar>(size, add_packet, first);
}

/// y += x, for `size` scalars.
template <class Scalar>
ATTUNE_INLINE void add_to(int size, const Scalar* x, Scalar* y) {
  add(size, static_cast<const Scalar*>(y), x, y);
}

/// The same; x becomes zero.
template <class Scalar>
[[gnu::noinline]] void move_to(int size, Scalar* x, Scalar* y) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    store(y + i, add(load<P>(y + i), load<P>(x + i)));
    store(x + i, broadcast<P>(Scalar(0)));
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
