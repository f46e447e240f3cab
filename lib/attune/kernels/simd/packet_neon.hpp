// The packets of NEON: of 64-bit Arm, and of 32-bit Arm if policy.hpp turns the unit on.
#pragma once

#include <attune/kernels/simd/packet.hpp>

#if ATTUNE_NEON || (defined(__aarch64__) && defined(__ARM_NEON))

#include <arm_neon.h>

namespace ATTUNE_NAMESPACE::kernels {

// A packet whose intrinsics are named vadd##q##_##f32. On 32-bit Arm, GCC's operators compute lane by lane,
// because the unit flushes subnormals.
#define ATTUNE_PACKET(P, ScalarType, HalfPacket, q, f32)                                        \
  template <>                                                                                   \
  struct PacketTraits<P> {                                                                      \
    using Scalar = ScalarType;                                                                  \
    using Half = HalfPacket;                                                                    \
    static constexpr int kLanes = static_cast<int>(sizeof(P) / sizeof(Scalar));                 \
                                                                                                \
    ATTUNE_INLINE static P load(const Scalar* from) { return vld1##q##_##f32(from); }           \
    ATTUNE_INLINE static void store(Scalar* to, const P& value) { vst1##q##_##f32(to, value); } \
    ATTUNE_INLINE static P broadcast(Scalar value) { return vdup##q##_n_##f32(value); }         \
  };                                                                                            \
  ATTUNE_INLINE P add(const P& a, const P& b) { return vadd##q##_##f32(a, b); }                 \
  ATTUNE_INLINE P subtract(const P& a, const P& b) { return vsub##q##_##f32(a, b); }            \
  ATTUNE_INLINE P multiply(const P& a, const P& b) { return vmul##q##_##f32(a, b); }            \
  ATTUNE_INLINE P negate(const P& a) { return vneg##q##_##f32(a); }                             \
  ATTUNE_INLINE P maximum(const P& a, const P& b) { return vmax##q##_##f32(a, b); }             \
  ATTUNE_INLINE P magnitude(const P& a) { return vabs##q##_##f32(a); }                          \
  ATTUNE_INLINE P select_less(const P& x, const P& bound, const P& then, const P& otherwise) {  \
    return vbsl##q##_##f32(vclt##q##_##f32(x, bound), then, otherwise);                         \
  }
ATTUNE_PACKET(float32x4_t, float, float32x2_t, q, f32)
ATTUNE_PACKET(float32x2_t, float, float32x2_t, , f32)
#if defined(__aarch64__)
ATTUNE_PACKET(float64x2_t, double, float64x2_t, q, f64)
#endif
#undef ATTUNE_PACKET

#if ATTUNE_FUSED
#define ATTUNE_PACKET_FMA(P, q, f32) \
  ATTUNE_INLINE P multiply_add(const P& a, const P& b, const P& c) { return vfma##q##_##f32(c, a, b); }
ATTUNE_PACKET_FMA(float32x4_t, q, f32)
ATTUNE_PACKET_FMA(float32x2_t, , f32)
#if defined(__aarch64__)
ATTUNE_PACKET_FMA(float64x2_t, q, f64)
#endif
#undef ATTUNE_PACKET_FMA
#endif

#if defined(__aarch64__)
ATTUNE_INLINE float32x4_t square_root(const float32x4_t& a) { return vsqrtq_f32(a); }
ATTUNE_INLINE float32x2_t square_root(const float32x2_t& a) { return vsqrt_f32(a); }
ATTUNE_INLINE float64x2_t square_root(const float64x2_t& a) { return vsqrtq_f64(a); }
#endif

namespace detail {

template <>
struct WidestPacket<float> {
  using type = float32x4_t;
};
#if defined(__aarch64__)
template <>
struct WidestPacket<double> {
  using type = float64x2_t;
};
#endif

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels

#endif
