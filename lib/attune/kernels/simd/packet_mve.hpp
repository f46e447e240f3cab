// The packet of a Cortex-M55's vector unit (MVE, Helium): four floats.
//
// MVE treats subnormal operands and results as zero; otherwise it rounds like the scalar unit. ATTUNE_MVE=0
// turns it off if even that difference matters.
#pragma once

#include <attune/kernels/simd/packet.hpp>

#if ATTUNE_MVE

#include <arm_mve.h>

namespace ATTUNE_NAMESPACE::kernels {

template <>
struct PacketTraits<float32x4_t> {
  using Scalar = float;
  using Half = float32x4_t;
  static constexpr int kLanes = 4;

  ATTUNE_INLINE static float32x4_t load(const float* from) { return vld1q_f32(from); }
  ATTUNE_INLINE static void store(float* to, const float32x4_t& value) { vst1q_f32(to, value); }
  ATTUNE_INLINE static float32x4_t broadcast(float value) { return vdupq_n_f32(value); }
};

ATTUNE_INLINE float32x4_t add(const float32x4_t& a, const float32x4_t& b) { return vaddq_f32(a, b); }
ATTUNE_INLINE float32x4_t subtract(const float32x4_t& a, const float32x4_t& b) { return vsubq_f32(a, b); }
ATTUNE_INLINE float32x4_t multiply(const float32x4_t& a, const float32x4_t& b) { return vmulq_f32(a, b); }
ATTUNE_INLINE float32x4_t maximum(const float32x4_t& a, const float32x4_t& b) { return vmaxnmq_f32(a, b); }
ATTUNE_INLINE float32x4_t magnitude(const float32x4_t& a) { return vabsq_f32(a); }

ATTUNE_INLINE float32x4_t multiply_add(const float32x4_t& a, const float32x4_t& b, const float32x4_t& c) {
  return ATTUNE_FUSED ? vfmaq_f32(c, a, b) : vaddq_f32(vmulq_f32(a, b), c);
}
ATTUNE_INLINE float32x4_t multiple(float a, const float32x4_t& b) { return vmulq_n_f32(b, a); }
ATTUNE_INLINE float32x4_t add_multiple(float a, const float32x4_t& b, const float32x4_t& c) {
  return ATTUNE_FUSED ? vfmaq_n_f32(c, b, a) : vaddq_f32(vmulq_f32(vdupq_n_f32(a), b), c);
}
ATTUNE_INLINE float32x4_t subtract_product(const float32x4_t& c, const float32x4_t& a, const float32x4_t& b) {
  return ATTUNE_FUSED ? vfmsq_f32(c, a, b) : vsubq_f32(c, vmulq_f32(a, b));
}
ATTUNE_INLINE float32x4_t select_less(const float32x4_t& x, float32x4_t bound, const float32x4_t& then,
                                      const float32x4_t& otherwise) {
#if defined(__clang__)
  asm("" : "+w"(bound));  // a known bound would become the second operand
#endif
  return vpselq_f32(then, otherwise, vcmpgtq_f32(bound, x));  // the instruction's "less" also holds for NaN
}

// The largest lane. Ignores NaNs beside numbers, as maximum().
ATTUNE_INLINE float largest_lane(const float32x4_t& a) { return vmaxnmvq_f32(-__builtin_inff(), a); }
// (a0 + a2) + (a1 + a3), on the scalar unit's view of the lanes.
ATTUNE_INLINE float sum_of_lanes(const float32x4_t& a) {
  register float32x4_t q0 asm("q0") = a;
  register float s4 asm("s4");
  asm("vadd.f32 s4,s0,s2\n vadd.f32 s5,s1,s3\n vadd.f32 s4,s4,s5" : "=&t"(s4) : "w"(q0) : "s5");
  return s4;
}

// MVE has no division and no square root. The scalar unit's registers are the lanes of the vector registers.
ATTUNE_INLINE float32x4_t divide(const float32x4_t& a, const float32x4_t& b) {
  register float32x4_t q0 asm("q0") = a;
  register float32x4_t q1 asm("q1") = b;
  asm("vdiv.f32 s0,s0,s4\n vdiv.f32 s1,s1,s5\n vdiv.f32 s2,s2,s6\n vdiv.f32 s3,s3,s7" : "+w"(q0) : "w"(q1));
  return q0;
}
ATTUNE_INLINE float32x4_t square_root(const float32x4_t& a) {
  register float32x4_t q0 asm("q0") = a;
  asm("vsqrt.f32 s0,s0\n vsqrt.f32 s1,s1\n vsqrt.f32 s2,s2\n vsqrt.f32 s3,s3" : "+w"(q0));
  return q0;
}

namespace detail {

template <>
struct WidestPacket<float> {
  using type = float32x4_t;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels

#endif
