// The packets of x86: SSE2, AVX, AVX-512.
#pragma once

#include <attune/kernels/simd/packet.hpp>

#if defined(__SSE2__)

#if defined(__clang__)
#include <cstdio>  // without it, clang 14 cannot include <string> after a precompiled header with intrinsics
#endif
#if defined(__AVX__)
#include <immintrin.h>
#else
#include <emmintrin.h>  // all of SSE2, and faster to compile
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wignored-attributes"  // as a template argument, a packet loses only its alignment
#endif

namespace ATTUNE_NAMESPACE::kernels {

// A packet whose intrinsics are named mm##_add_##ps.
#define ATTUNE_PACKET_TRAITS(P, ScalarType, HalfPacket, mm, ps)                                  \
  template <>                                                                                    \
  struct PacketTraits<P> {                                                                       \
    using Scalar = ScalarType;                                                                   \
    using Half = HalfPacket;                                                                     \
    static constexpr int kLanes = static_cast<int>(sizeof(P) / sizeof(Scalar));                  \
                                                                                                 \
    ATTUNE_INLINE static P load(const Scalar* from) { return mm##_loadu_##ps(from); }            \
    ATTUNE_INLINE static void store(Scalar* to, const P& value) { mm##_storeu_##ps(to, value); } \
    ATTUNE_INLINE static P broadcast(Scalar value) { return mm##_set1_##ps(value); }             \
  };
// Its operations. If an operand is NaN, the maximum is `a`.
#define ATTUNE_PACKET_OPERATIONS(P, ScalarType, mm, ps)                                                   \
  ATTUNE_INLINE P maximum(const P& a, const P& b) { return mm##_max_##ps(b, a); }                         \
  ATTUNE_INLINE P magnitude(const P& a) { return mm##_andnot_##ps(mm##_set1_##ps(ScalarType(-0.0)), a); } \
  ATTUNE_INLINE P square_root(const P& a) { return mm##_sqrt_##ps(a); }
#define ATTUNE_PACKET_FMA(P, mm, ps) \
  ATTUNE_INLINE P multiply_add(const P& a, const P& b, const P& c) { return mm##_fmadd_##ps(a, b, c); }

ATTUNE_PACKET_TRAITS(__m128, float, __m128, _mm, ps)
ATTUNE_PACKET_TRAITS(__m128d, double, __m128d, _mm, pd)
ATTUNE_PACKET_OPERATIONS(__m128, float, _mm, ps)
ATTUNE_PACKET_OPERATIONS(__m128d, double, _mm, pd)
#if ATTUNE_FUSED
ATTUNE_PACKET_FMA(__m128, _mm, ps)
ATTUNE_PACKET_FMA(__m128d, _mm, pd)
#endif

#if defined(__AVX__)
ATTUNE_PACKET_TRAITS(__m256, float, __m128, _mm256, ps)
ATTUNE_PACKET_TRAITS(__m256d, double, __m128d, _mm256, pd)
ATTUNE_PACKET_OPERATIONS(__m256, float, _mm256, ps)
ATTUNE_PACKET_OPERATIONS(__m256d, double, _mm256, pd)
#if ATTUNE_FUSED
ATTUNE_PACKET_FMA(__m256, _mm256, ps)
ATTUNE_PACKET_FMA(__m256d, _mm256, pd)
#endif
#endif

#if defined(__AVX512F__)
ATTUNE_PACKET_TRAITS(__m512, float, __m256, _mm512, ps)
ATTUNE_PACKET_TRAITS(__m512d, double, __m256d, _mm512, pd)
// GCC 12 warns of uninitialized values in intrinsics without a mask.
#define ATTUNE_PACKET_OPERATIONS_512(P, ps, mask)                                                 \
  ATTUNE_INLINE P maximum(const P& a, const P& b) { return _mm512_maskz_max_##ps(mask, b, a); }   \
  ATTUNE_INLINE P magnitude(const P& a) { return _mm512_abs_##ps(a); }                            \
  ATTUNE_INLINE P square_root(const P& a) { return _mm512_maskz_sqrt_##ps(mask, a); }             \
  ATTUNE_INLINE P select_less(const P& x, const P& bound, const P& then, const P& otherwise) {    \
    return _mm512_mask_blend_##ps(_mm512_cmp_##ps##_mask(x, bound, _CMP_LT_OQ), otherwise, then); \
  }
ATTUNE_PACKET_OPERATIONS_512(__m512, ps, 0xFFFF)
ATTUNE_PACKET_OPERATIONS_512(__m512d, pd, 0xFF)
#undef ATTUNE_PACKET_OPERATIONS_512
#if ATTUNE_FUSED
ATTUNE_PACKET_FMA(__m512, _mm512, ps)
ATTUNE_PACKET_FMA(__m512d, _mm512, pd)
#endif
#endif

#undef ATTUNE_PACKET_TRAITS
#undef ATTUNE_PACKET_OPERATIONS
#undef ATTUNE_PACKET_FMA

namespace detail {

template <>
struct WidestPacket<float> {
#if defined(__AVX512F__)
  using type = __m512;
#elif defined(__AVX__)
  using type = __m256;
#else
  using type = __m128;
#endif
};
template <>
struct WidestPacket<double> {
#if defined(__AVX512F__)
  using type = __m512d;
#elif defined(__AVX__)
  using type = __m256d;
#else
  using type = __m128d;
#endif
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif
