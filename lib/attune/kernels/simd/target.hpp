// Facts about a processor's registers and memory for portable kernels, and loads by its own instructions.
#pragma once

#include <cstring>
#include <type_traits>

#include <attune/kernels/simd/dequantize.hpp>

namespace ATTUNE_NAMESPACE::kernels::detail {

// Whether packets are MVE's: few registers, scalars as operands, no shuffles.
inline constexpr bool kHasMve = ATTUNE_MVE;

// Whether prefetching pays.
#if defined(__x86_64__)
inline constexpr bool kPrefetches = true;
#else
inline constexpr bool kPrefetches = false;  // memory is as near as a cache, or it was never measured
#endif

// Whether an instruction multiplies a packet by one lane of another: A is then read in packets, too.
template <class P>
inline constexpr bool kMultipliesByLanes =
#if defined(__aarch64__)
    std::is_same_v<P, Packet<float>>;
#else
    false;
#endif

// sum += a[lane] · b, rounded like add_multiple.
template <class P>
ATTUNE_INLINE void add_multiple_of_lane(const P& a, int lane, const P& b, P& sum) {
#if defined(__aarch64__) && !ATTUNE_PORTABLE_KERNELS
  // In assembly and in this order, because GCC copies sums from register to register, and spills them.
#if ATTUNE_FUSED
#define ATTUNE_ADD_LANE(n) asm volatile("fmla %0.4s,%1.4s,%2.s[" #n "]" : "+w"(sum) : "w"(b), "w"(a))
#else
  P product;
#define ATTUNE_ADD_LANE(n)                                              \
  asm volatile("fmul %1.4s,%2.4s,%3.s[" #n "]\n fadd %0.4s,%0.4s,%1.4s" \
               : "+w"(sum), "=&w"(product)                              \
               : "w"(b), "w"(a))
#endif
  if (lane == 0) ATTUNE_ADD_LANE(0);
  if (lane == 1) ATTUNE_ADD_LANE(1);
  if (lane == 2) ATTUNE_ADD_LANE(2);
  if (lane == 3) ATTUNE_ADD_LANE(3);
#undef ATTUNE_ADD_LANE
#else
  sum = add_multiple<P>(a[lane], b, sum);
#endif
}

// Registers for a block of sums, one packet of B and one packet of A.
template <class P>
constexpr int registers() {
#if defined(__AVX512F__) || defined(__aarch64__)
  return 32;
#else
  // A Cortex-M FPU has 32 single registers, MVE 8 packets, x86 and NEON 16.
  return kIsScalar<P> ? 24 : ATTUNE_MVE ? 8 : 16;
#endif
}

// How often a tile reads a scalar of A to multiply a row of packets. AVX-512 multiplies by a scalar in memory
// at no cost. Broadcasting it first takes the unit that adds, which is busy only in `unfused`.
template <class P>
constexpr int reads_of_a([[maybe_unused]] int packets) {
#if defined(__AVX512F__) && !ATTUNE_FUSED
  if constexpr (sizeof(P) == 64) return packets;
#endif
  return 1;
}

// Hides from the compiler that addresses are equal; it would read only once.
template <class Scalar>
ATTUNE_INLINE void forget(const Scalar*& from) {
  asm("" : "+r"(from));
}

// Keeps the compiler from loading a packet again for each of its few uses.
template <class P>
ATTUNE_INLINE void read_once([[maybe_unused]] P& row) {
#if defined(__SSE2__)
  if constexpr (!kIsScalar<P> && !std::is_class_v<P>) asm("" : "+v"(row));
#endif
}

// Four scalars from each of lanes/4 rows: quad q is from[q · kStride …]. Insertion from memory needs no
// shuffle.
template <class P, int kStride, class Stored>
ATTUNE_INLINE P load_quads(const Stored* from) {
  return load_of_b<P>(from);
}
#if defined(__AVX__)
template <class P, int kStride, class Stored>
  requires(kLanes<P> == 8)
ATTUNE_INLINE P load_quads(const Stored* from) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_of_b<__m128>(from)),
                              load_of_b<__m128>(from + kStride), 1);
}
#endif
#if defined(__AVX512F__)
template <class P, int kStride, class Stored>
  requires(kLanes<P> == 16)
ATTUNE_INLINE P load_quads(const Stored* from) {
  P quads = _mm512_castps128_ps512(load_of_b<__m128>(from));
  quads = _mm512_insertf32x4(quads, load_of_b<__m128>(from + kStride), 1);
  quads = _mm512_insertf32x4(quads, load_of_b<__m128>(from + 2 * kStride), 2);
  return _mm512_insertf32x4(quads, load_of_b<__m128>(from + 3 * kStride), 3);
}
#endif

// The first `count` scalars, then zeros; reads no scalar after them. Assembling them in memory would take
// longer: a load waits for stores that it only partly covers.
template <int count, class P, class Scalar>
ATTUNE_INLINE P load_and_zeros(const Scalar* from) {
  Array<Scalar, kLanes<P>> lanes{};
  std::memcpy(lanes, from, sizeof(Scalar) * count);
  return load<P>(lanes);
}
#if defined(__SSE2__)
template <int count, class P>
  requires(kLanes<P> == 4)
ATTUNE_INLINE P load_and_zeros(const float* from) {
  if constexpr (count == 1) return _mm_load_ss(from);
  const __m128 two = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  return count == 2 ? two : _mm_movelh_ps(two, _mm_load_ss(from + 2));
}
template <int count, class P>
  requires(kLanes<P> == 2)
ATTUNE_INLINE P load_and_zeros(const double* from) { return _mm_load_sd(from); }
#endif
#if defined(__AVX__)
template <int count, class P>
  requires(kLanes<P> == 8)
ATTUNE_INLINE P load_and_zeros(const float* from) {
  return _mm256_maskload_ps(from, _mm256_setr_epi32(-(count > 0), -(count > 1), -(count > 2), -(count > 3),
                                                    -(count > 4), -(count > 5), -(count > 6), 0));
}
template <int count, class P>
  requires(kLanes<P> == 4)
ATTUNE_INLINE P load_and_zeros(const double* from) {
  return _mm256_maskload_pd(from, _mm256_setr_epi64x(-(count > 0), -(count > 1), -(count > 2), 0));
}
#endif
#if defined(__AVX512F__)
template <int count, class P>
  requires(kLanes<P> == 16)
ATTUNE_INLINE P load_and_zeros(const float* from) { return _mm512_maskz_loadu_ps((1u << count) - 1, from); }
template <int count, class P>
  requires(kLanes<P> == 8)
ATTUNE_INLINE P load_and_zeros(const double* from) { return _mm512_maskz_loadu_pd((1u << count) - 1, from); }
#endif

}  // namespace ATTUNE_NAMESPACE::kernels::detail
