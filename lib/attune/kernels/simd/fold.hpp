// Folds a packet to one scalar: joins its halves lane by lane until one lane is left.
#pragma once

#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// The upper half of a packet, and its lower half, as packets of half the lanes. Packets of 4 lanes are folded
// in memory.
struct NoHalves;
void upper_half(const NoHalves&);
void lower_half(const NoHalves&);
#if defined(__AVX512F__)
ATTUNE_INLINE __m256 upper_half(__m512 a) { return _mm512_extractf32x8_ps(a, 1); }
ATTUNE_INLINE __m256 lower_half(__m512 a) { return _mm512_castps512_ps256(a); }
ATTUNE_INLINE __m256d upper_half(__m512d a) { return _mm512_extractf64x4_pd(a, 1); }
ATTUNE_INLINE __m256d lower_half(__m512d a) { return _mm512_castpd512_pd256(a); }
#endif
#if defined(__AVX__)
ATTUNE_INLINE __m128 upper_half(__m256 a) { return _mm256_extractf128_ps(a, 1); }
ATTUNE_INLINE __m128 lower_half(__m256 a) { return _mm256_castps256_ps128(a); }
ATTUNE_INLINE __m128d upper_half(__m256d a) { return _mm256_extractf128_pd(a, 1); }
ATTUNE_INLINE __m128d lower_half(__m256d a) { return _mm256_castpd256_pd128(a); }
#endif

}  // namespace detail

/// join(join(…), …) over the lanes of `a` in the order of kernels/ops/reduce.hpp: lane l with lane l + half,
/// then again with half the lanes. `join(x, y)` takes packets of any width, and scalars.
template <class P, class Join>
ATTUNE_INLINE ScalarOf<P> fold(const P& a, const Join& join) {
  using Scalar = ScalarOf<P>;
  if constexpr (kLanes<P> == 1) {
    return a;
  } else if constexpr (requires { detail::upper_half(a); }) {
    return fold(join(detail::lower_half(a), detail::upper_half(a)), join);
  } else {
    Scalar lanes[kLanes<P>];
    store(lanes, a);
    if constexpr (kLanes<P> == 2) return join(lanes[0], lanes[1]);
    if constexpr (kLanes<P> == 4) return join(join(lanes[0], lanes[2]), join(lanes[1], lanes[3]));
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
