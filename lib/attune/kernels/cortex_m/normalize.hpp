// The loops of ops/normalize.hpp over a row on the single-precision FPU of a Cortex-M, in assembly, with
// multiple loads, which compilers do not use. The bits are those of the portable code.
#pragma once

#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/portable/partial_sums.hpp>

#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE

namespace ATTUNE_NAMESPACE::kernels::detail {

// x0 … x3 = op(x, number), and the same for eight registers.
#define ATTUNE_FOUR(op, x0, x1, x2, x3, with)                                                         \
  op ".f32 " x0 "," x0 "," with "\n" op ".f32 " x1 "," x1 "," with "\n" op ".f32 " x2 "," x2 "," with \
     "\n" op ".f32 " x3 "," x3 "," with "\n"
#define ATTUNE_LOW(op, with) \
  ATTUNE_FOUR(op, "s0", "s1", "s2", "s3", with) ATTUNE_FOUR(op, "s4", "s5", "s6", "s7", with)
#define ATTUNE_HIGH(op, with) \
  ATTUNE_FOUR(op, "s16", "s17", "s18", "s19", with) ATTUNE_FOUR(op, "s20", "s21", "s22", "s23", with)
// op on eight lanes: s0 … s7 with the next eight registers.
#define ATTUNE_LANES(op, to0, to1, to2, to3, to4, to5, to6, to7, x0, x1, x2, x3, x4, x5, x6, x7)           \
  op ".f32 " to0 "," x0 ",s0\n" op ".f32 " to1 "," x1 ",s1\n" op ".f32 " to2 "," x2 ",s2\n" op ".f32 " to3 \
     "," x3 ",s3\n" op ".f32 " to4 "," x4 ",s4\n" op ".f32 " to5 "," x5 ",s5\n" op ".f32 " to6 "," x6      \
     ",s6\n" op ".f32 " to7 "," x7 ",s7\n"
#define ATTUNE_EIGHT_LANES "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"
#define ATTUNE_EIGHT_HIGH "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23"
#define ATTUNE_EIGHT_HIGHEST "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31"
#define ATTUNE_EIGHT_LOW "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"
#define ATTUNE_LANES_OF(...) ATTUNE_LANES(__VA_ARGS__)
#define ATTUNE_ADD_LOW ATTUNE_LANES_OF("vadd", ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_LANES)
// Terms with rounded products. A product with an instruction of its own overwrites x, which is not read
// again.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_ADD_SQUARES ATTUNE_LANES_OF("vmul", ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_LOW) ATTUNE_ADD_LOW
#define ATTUNE_ADD_PRODUCTS ATTUNE_LANES_OF("vmul", ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_HIGH) ATTUNE_ADD_LOW
#define ATTUNE_SQUARES_OF(to0, to1, to2, to3, to4, to5, to6, to7, x0, x1, x2, x3, x4, x5, x6, x7) \
  ATTUNE_MACS(to0, x0, x0, to1, x1, x1, to2, x2, x2, to3, x3, x3, x0, x1, x2, x3)                 \
  ATTUNE_MACS(to4, x4, x4, to5, x5, x5, to6, x6, x6, to7, x7, x7, x4, x5, x6, x7)
#else
#define ATTUNE_ADD_SQUARES ATTUNE_LANES_OF("vmla", ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_LOW)
#define ATTUNE_ADD_PRODUCTS ATTUNE_LANES_OF("vmla", ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_HIGH)
#define ATTUNE_SQUARES_OF(to0, to1, to2, to3, to4, to5, to6, to7, x0, x1, x2, x3, x4, x5, x6, x7)    \
  "vmla.f32 " to0 "," x0 "," x0 "\n vmla.f32 " to1 "," x1 "," x1 "\n vmla.f32 " to2 "," x2 "," x2    \
  "\n vmla.f32 " to3 "," x3 "," x3 "\n vmla.f32 " to4 "," x4 "," x4 "\n vmla.f32 " to5 "," x5 "," x5 \
  "\n vmla.f32 " to6 "," x6 "," x6 "\n vmla.f32 " to7 "," x7 "," x7 "\n"
#endif
#define ATTUNE_SQUARES(...) ATTUNE_SQUARES_OF(__VA_ARGS__)
#define ATTUNE_LOAD(from, to) "vldmia %[" from "],{" to "}\n add %[" from "],%[" from "],#64\n"
#define ATTUNE_GRADIENTS     \
  ATTUNE_LOAD("dy", "s0-s7") \
  ATTUNE_LOAD("weight", "s16-s23") ATTUNE_LANES_OF("vmul", ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_HIGH)

// Σ of `size` terms in the order of ops/reduce.hpp: two passes of eight lanes over blocks of 16 terms, each
// from −0. `terms` adds eight terms to s8 … s15 and advances the pointers, `rewind` moves them back. `term`
// returns a term behind the last block.
#define ATTUNE_SUM(at_x, at_dy, at_weight, rewind, terms, ...)                                        \
  float lanes[kSumLanes];                                                                             \
  const int whole = size & -kSumLanes;                                                                \
  const float *from = at_x, *from_dy = at_dy, *from_weight = at_weight, *const end = from + whole;    \
  float* to = lanes;                                                                                  \
  asm volatile(                                                                                       \
      "0: vmov d4,%[zero],%[zero]\n vmov d5,%[zero],%[zero]\n vmov d6,%[zero],%[zero]\n "             \
      "vmov d7,%[zero],%[zero]\n b 2f\n"                                                              \
      "1:\n" terms                                                                                    \
      "2: cmp %[from],%[end]\n blo 1b\n "                                                             \
      "vstmia %[to]!,{s8-s15}\n cmp %[to],%[last]\n sub %[from],%[from],%[back]\n " rewind "bne 0b\n" \
      : [from] "+&r"(from), [dy] "+&r"(from_dy), [weight] "+&r"(from_weight), [to] "+&r"(to)          \
      : [end] "r"(end), [last] "r"(lanes + kSumLanes), [back] "r"(4 * (whole - kSumLanes / 2)),       \
        [zero] "r"(0x80000000)__VA_OPT__(, ) __VA_ARGS__                                              \
      : "cc", "memory", ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_HIGH);                     \
  for (int i = whole; i < size; ++i) {                                                                \
    float& lane = lanes[i % kSumLanes];                                                               \
    lane = add(lane, term(i));                                                                        \
  }                                                                                                   \
  return sum_of_lanes(lanes)
#define ATTUNE_REWIND(from) "sub %[" from "],%[" from "],%[back]\n "

/// Σ (x − first)
ATTUNE_INLINE float differences(int size, const float* x, float first) {
  const auto term = [=](int i) { return x[i] - first; };
  ATTUNE_SUM(x, x, x, "",
             ATTUNE_LOAD("from", "s0-s7") ATTUNE_LOW("vsub", "%[first]") ATTUNE_ADD_LOW, [first] "t"(first));
}
/// Σ ((x − first) − offset)²
ATTUNE_INLINE float sum_of_squared_differences(int size, const float* x, float first, float offset) {
  const auto term = [=](int i) {
    const float centered = x[i] - first - offset;
    return centered * centered;
  };
  ATTUNE_SUM(x, x, x, "",
             ATTUNE_LOAD("from", "s0-s7") ATTUNE_LOW("vsub", "%[first]") ATTUNE_LOW("vsub", "%[offset]")
                 ATTUNE_ADD_SQUARES,
             [first] "t"(first), [offset] "t"(offset));
}
/// Σ x², in the order of ops/reduce.hpp. Without differences, the registers hold all 16 lanes.
ATTUNE_INLINE float sum_of_row_squares(int size, const float* x) {
  float lanes[kSumLanes];
  const int whole = size & -kSumLanes;
  const float* from = x;
  asm volatile(
      "vmov d0,%[zero],%[zero]\n vmov d1,%[zero],%[zero]\n vmov d2,%[zero],%[zero]\n "
      "vmov d3,%[zero],%[zero]\n vmov d4,%[zero],%[zero]\n vmov d5,%[zero],%[zero]\n "
      "vmov d6,%[zero],%[zero]\n vmov d7,%[zero],%[zero]\n b 2f\n"
      "1: vldmia %[from]!,{s16-s31}\n" ATTUNE_SQUARES(ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_HIGH) ATTUNE_SQUARES(
          ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_HIGHEST) "2: cmp %[from],%[end]\n blo 1b\n vstmia %[to],{s0-s15}\n"
      : [from] "+&r"(from)
      : [end] "r"(x + whole), [to] "r"(lanes), [zero] "r"(0x80000000)
      : "cc", "memory", ATTUNE_EIGHT_LOW, ATTUNE_EIGHT_LANES, ATTUNE_EIGHT_HIGH, ATTUNE_EIGHT_HIGHEST);
  for (int i = whole; i < size; ++i) lanes[i - whole] = add(lanes[i - whole], x[i] * x[i]);
  return sum_of_lanes(lanes);
}
/// Σ dy ∘ weight
ATTUNE_INLINE float sum_of_gradients(int size, const float* dy, const float* weight) {
  const auto term = [=](int i) { return dy[i] * weight[i]; };
  ATTUNE_SUM(dy, dy, weight, ATTUNE_REWIND("dy") ATTUNE_REWIND("weight"),
             ATTUNE_GRADIENTS "add %[from],%[from],#64\n" ATTUNE_ADD_LOW);
}
/// Σ (dy ∘ weight) ∘ x̂, with x̂ = (x − first − offset) · inverse; x · inverse without kCentered.
template <bool kCentered>
ATTUNE_INLINE float dot_with_gradients(int size, const float* x, float first, float offset, float inverse,
                                       const float* weight, const float* dy) {
  const auto term = [=](int i) {
    return dy[i] * weight[i] * ((kCentered ? x[i] - first - offset : x[i]) * inverse);
  };
#define ATTUNE_DOT(centered)                                                                            \
  ATTUNE_SUM(x, dy, weight, ATTUNE_REWIND("dy") ATTUNE_REWIND("weight"),                                \
             ATTUNE_GRADIENTS ATTUNE_LOAD("from", "s16-s23") centered ATTUNE_HIGH("vmul", "%[inverse]") \
                 ATTUNE_ADD_PRODUCTS,                                                                   \
             [first] "t"(first), [offset] "t"(offset), [inverse] "t"(inverse))
  if constexpr (kCentered) {
    ATTUNE_DOT(ATTUNE_HIGH("vsub", "%[first]") ATTUNE_HIGH("vsub", "%[offset]"));
  } else {
    ATTUNE_DOT("");
  }
#undef ATTUNE_DOT
}

/// y = x̂ ∘ weight + bias for the whole fours of `size`, at least one, with x̂ = (x − first − offset) ·
/// inverse; x · inverse without kCentered.
template <bool kCentered, bool kWeight, bool kBias>
ATTUNE_INLINE void normalize_fours(int size, const float* x, float first, float offset, float inverse,
                                   const float* weight, const float* bias, float* y) {
  const float* const end = x + (size & -4);
#define ATTUNE_ONE(op, with) ATTUNE_FOUR(op, "s0", "s1", "s2", "s3", with)
#define ATTUNE_CENTERD ATTUNE_ONE("vsub", "%[first]") ATTUNE_ONE("vsub", "%[offset]")
#define ATTUNE_WEIGHTED                                                                      \
  "vldmia %[weight]!,{s4-s7}\n vmul.f32 s0,s0,s4\n vmul.f32 s1,s1,s5\n vmul.f32 s2,s2,s6\n " \
  "vmul.f32 s3,s3,s7\n"
#define ATTUNE_BIASED                                                   \
  "vldmia %[weight]!,{s4-s7}\n vldmia %[bias]!,{s8-s11}\n" ATTUNE_MACS( \
      "s8", "s0", "s4", "s9", "s1", "s5", "s10", "s2", "s6", "s11", "s3", "s7", "s0", "s1", "s2", "s3")
#define ATTUNE_NORMALIZE(centered, scaled, stored)                                                \
  asm volatile("1: vldmia %[x]!,{s0-s3}\n" centered ATTUNE_ONE("vmul", "%[inverse]") scaled       \
               "cmp %[x],%[end]\n vstmia %[y]!,{" stored "}\n bne 1b\n"                           \
               : [x] "+&r"(x), [y] "+&r"(y), [weight] "+&r"(weight), [bias] "+&r"(bias)           \
               : [end] "r"(end), [first] "t"(first), [offset] "t"(offset), [inverse] "t"(inverse) \
               : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")
  if constexpr (kCentered && kBias) {
    ATTUNE_NORMALIZE(ATTUNE_CENTERD, ATTUNE_BIASED, "s8-s11");
  } else if constexpr (kCentered && kWeight) {
    ATTUNE_NORMALIZE(ATTUNE_CENTERD, ATTUNE_WEIGHTED, "s0-s3");
  } else if constexpr (kCentered) {
    ATTUNE_NORMALIZE(ATTUNE_CENTERD, "", "s0-s3");
  } else if constexpr (kBias) {
    ATTUNE_NORMALIZE("", ATTUNE_BIASED, "s8-s11");
  } else if constexpr (kWeight) {
    ATTUNE_NORMALIZE("", ATTUNE_WEIGHTED, "s0-s3");
  } else {
    ATTUNE_NORMALIZE("", "", "s0-s3");
  }
#undef ATTUNE_ONE
#undef ATTUNE_CENTERD
#undef ATTUNE_WEIGHTED
#undef ATTUNE_BIASED
#undef ATTUNE_NORMALIZE
}

/// dx = inverse · (dy ∘ weight − mean_gradient − x̂ · projection) for the whole fours of `size`, at least one.
/// The mean gradient is subtracted with kCentered alone.
template <bool kCentered>
ATTUNE_INLINE void normalize_fours_backward(int size, const float* x, float first, float offset,
                                            float inverse, const float* weight, const float* dy,
                                            float mean_gradient, float projection, float* dx) {
  const float* const end = x + (size & -4);
#if ATTUNE_FUSED
#define ATTUNE_PROJECTED                                                                           \
  "vfms.f32 s0,s8,%[projection]\n vfms.f32 s1,s9,%[projection]\n vfms.f32 s2,s10,%[projection]\n " \
  "vfms.f32 s3,s11,%[projection]\n"
#else
#define ATTUNE_PROJECTED                                         \
  ATTUNE_FOUR("vmul", "s8", "s9", "s10", "s11", "%[projection]") \
  "vsub.f32 s0,s0,s8\n vsub.f32 s1,s1,s9\n vsub.f32 s2,s2,s10\n vsub.f32 s3,s3,s11\n"
#endif
#define ATTUNE_BACKWARD(centered, less_mean)                                                                \
  asm volatile(                                                                                             \
      "1: vldmia %[dy]!,{s0-s3}\n vldmia %[weight]!,{s4-s7}\n vldmia %[x]!,{s8-s11}\n vmul.f32 s0,s0,s4\n " \
      "vmul.f32 s1,s1,s5\n vmul.f32 s2,s2,s6\n vmul.f32 s3,s3,s7\n cmp %[x],%[end]\n" less_mean centered    \
          ATTUNE_FOUR("vmul", "s8", "s9", "s10", "s11", "%[inverse]") ATTUNE_PROJECTED ATTUNE_FOUR(         \
              "vmul", "s0", "s1", "s2", "s3", "%[inverse]") "vstmia %[dx]!,{s0-s3}\n bne 1b\n"              \
      : [x] "+&r"(x), [dx] "+&r"(dx), [weight] "+&r"(weight), [dy] "+&r"(dy)                                \
      : [end] "r"(end), [first] "t"(first), [offset] "t"(offset), [inverse] "t"(inverse),                   \
        [mean] "t"(mean_gradient), [projection] "t"(projection)                                             \
      : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")
  if constexpr (kCentered) {
    ATTUNE_BACKWARD(ATTUNE_FOUR("vsub", "s8", "s9", "s10", "s11", "%[first]")
                        ATTUNE_FOUR("vsub", "s8", "s9", "s10", "s11", "%[offset]"),
                    ATTUNE_FOUR("vsub", "s0", "s1", "s2", "s3", "%[mean]"));
  } else {
    ATTUNE_BACKWARD("", "");
  }
#undef ATTUNE_PROJECTED
#undef ATTUNE_BACKWARD
}

#undef ATTUNE_FOUR
#undef ATTUNE_LOW
#undef ATTUNE_HIGH
#undef ATTUNE_LANES
#undef ATTUNE_EIGHT_LANES
#undef ATTUNE_EIGHT_HIGH
#undef ATTUNE_EIGHT_LOW
#undef ATTUNE_EIGHT_HIGHEST
#undef ATTUNE_SQUARES_OF
#undef ATTUNE_SQUARES
#undef ATTUNE_LANES_OF
#undef ATTUNE_ADD_LOW
#undef ATTUNE_ADD_SQUARES
#undef ATTUNE_ADD_PRODUCTS
#undef ATTUNE_LOAD
#undef ATTUNE_GRADIENTS
#undef ATTUNE_SUM
#undef ATTUNE_REWIND

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
