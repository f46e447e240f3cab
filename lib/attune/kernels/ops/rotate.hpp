// Rotation of pairs of numbers, for rotary positions.
#pragma once

#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// a · b, rounded. Without it, GCC 12 at -O3 fuses scalar products that are added and subtracted in turn into
// x86's vfmaddsub, regardless of -ffp-contract.
template <class P>
ATTUNE_INLINE P rounded_product(const P& a, const P& b) {
  P product = multiply(a, b);
#if defined(__FMA__) && !ATTUNE_FUSED
  if constexpr (kIsScalar<P>) asm("" : "+x"(product));
#endif
  return product;
}
// x·c + y·s, and x·c − y·s.
template <class P>
ATTUNE_INLINE P sum_of_products(const P& x, const P& c, const P& y, const P& s) {
  if constexpr (ATTUNE_FUSED) return multiply_add(y, s, multiply(x, c));
  return add(rounded_product(x, c), rounded_product(y, s));
}
template <class P>
ATTUNE_INLINE P difference_of_products(const P& x, const P& c, const P& y, const P& s) {
  if constexpr (ATTUNE_FUSED) return subtract_product(multiply(x, c), y, s);
  return subtract(rounded_product(x, c), rounded_product(y, s));
}

}  // namespace detail

/// (a, b) rotated by the angle with cosine c and sine s, or back.
template <bool kBack, class P>
ATTUNE_INLINE void rotate_pair(P& a, P& b, const P& c, const P& s) {
  const P first = a, second = b;
  if constexpr (kBack) {
    a = detail::sum_of_products(first, c, second, s);
    b = detail::difference_of_products(second, c, first, s);
  } else {
    a = detail::difference_of_products(first, c, second, s);
    b = detail::sum_of_products(second, c, first, s);
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
