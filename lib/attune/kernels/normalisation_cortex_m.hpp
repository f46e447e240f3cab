// What normalisation.hpp does to every element of a row, on the single-precision FPU of a Cortex-M, in
// assembly: multiple loads, which compilers do not find. The bits are those of the portable code.
#pragma once

#include <attune/kernels/reduce.hpp>
#include <attune/kernels/terms_cortex_m.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

#define ATTUNE_FOUR(op, x0, x1, x2, x3, with) \
  op x0 "," x0 "," with "\n" op x1 "," x1 "," with "\n" op x2 "," x2 "," with "\n" op x3 "," x3 "," with "\n"
#define ATTUNE_EIGHT(op, with)                          \
  ATTUNE_FOUR(op ".f32 ", "s0", "s1", "s2", "s3", with) \
  ATTUNE_FOUR(op ".f32 ", "s4", "s5", "s6", "s7", with)
#define ATTUNE_ADD(lane, x) "vadd.f32 " lane "," lane "," x "\n"
#define ATTUNE_ADD_SQUARE(lane, x) "vmla.f32 " lane "," x "," x "\n"
#define ATTUNE_EIGHT_LANES(add)                                                                       \
  add("s8", "s0") add("s9", "s1") add("s10", "s2") add("s11", "s3") add("s12", "s4") add("s13", "s5") \
      add("s14", "s6") add("s15", "s7")

// Σ of terms of x[0 … size), in the order of reduce.hpp: eight lanes at a time, over blocks of 16 terms, each
// from −0; `terms` makes terms of s0 … s7 and adds them to s8 … s15. `term` gives those behind the last
// block.
#define ATTUNE_SUM(terms, ...)                                                                           \
  float lanes[kSumLanes];                                                                                \
  const int whole = size & -kSumLanes;                                                                   \
  const float* from = x;                                                                                 \
  float* to = lanes;                                                                                     \
  asm volatile(                                                                                          \
      "0: vmov d4,%[zero],%[zero]\n vmov d5,%[zero],%[zero]\n vmov d6,%[zero],%[zero]\n "                \
      "vmov d7,%[zero],%[zero]\n b 2f\n"                                                                 \
      "1: vldmia %[from],{s0-s7}\n add %[from],%[from],#64\n" terms                                      \
      "2: cmp %[from],%[end]\n blo 1b\n "                                                                \
      "vstmia %[to]!,{s8-s15}\n cmp %[to],%[last]\n sub %[from],%[from],%[back]\n bne 0b\n"              \
      : [from] "+&r"(from), [to] "+&r"(to)                                                               \
      : [end] "r"(x + whole), [last] "r"(lanes + kSumLanes), [back] "r"(4 * (whole - kSumLanes / 2)),    \
        [zero] "r"(0x80000000)__VA_OPT__(, ) __VA_ARGS__                                                 \
      : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", \
        "s13", "s14", "s15");                                                                            \
  for (int i = whole; i < size; ++i) {                                                                   \
    float& lane = lanes[i % kSumLanes];                                                                  \
    lane = add(lane, term(x[i]));                                                                        \
  }                                                                                                      \
  return sum_of_lanes(lanes)

/// Σ (x − first)
ATTUNE_INLINE float sum_of_differences(int size, const float* x, float first) {
  const auto term = [=](float value) { return value - first; };
  ATTUNE_SUM(ATTUNE_EIGHT("vsub", "%[first]") ATTUNE_EIGHT_LANES(ATTUNE_ADD), [first] "t"(first));
}
/// Σ ((x − first) − offset)²
ATTUNE_INLINE float sum_of_squared_differences(int size, const float* x, float first, float offset) {
  const auto term = [=](float value) {
    const float centred = value - first - offset;
    return centred * centred;
  };
  ATTUNE_SUM(ATTUNE_EIGHT("vsub", "%[first]") ATTUNE_EIGHT("vsub", "%[offset]")
                 ATTUNE_EIGHT_LANES(ATTUNE_ADD_SQUARE),
             [first] "t"(first), [offset] "t"(offset));
}
/// Σ x², in the order of reduce.hpp.
ATTUNE_INLINE float sum_of_row_squares(int size, const float* x) {
  const auto term = [](float value) { return value * value; };
  ATTUNE_SUM(ATTUNE_EIGHT_LANES(ATTUNE_ADD_SQUARE));
}

/// y = (x − first − offset) · inverse, without the differences where not kCentred, ∘ weight + bias of the
/// fours in `size`, at least one.
template <bool kCentred, bool kWeight, bool kBias>
ATTUNE_INLINE void normalise_fours(int size, const float* x, float first, float offset, float inverse,
                                   const float* weight, const float* bias, float* y) {
  const float* const end = x + (size & -4);
#define ATTUNE_ONE(op, with) ATTUNE_FOUR(op ".f32 ", "s0", "s1", "s2", "s3", with)
#define ATTUNE_CENTRED ATTUNE_ONE("vsub", "%[first]") ATTUNE_ONE("vsub", "%[offset]")
#define ATTUNE_WEIGHTED                                                                      \
  "vldmia %[weight]!,{s4-s7}\n vmul.f32 s0,s0,s4\n vmul.f32 s1,s1,s5\n vmul.f32 s2,s2,s6\n " \
  "vmul.f32 s3,s3,s7\n"
#define ATTUNE_BIASED                                                   \
  "vldmia %[weight]!,{s4-s7}\n vldmia %[bias]!,{s8-s11}\n" ATTUNE_MACS( \
      "s8", "s0", "s4", "s9", "s1", "s5", "s10", "s2", "s6", "s11", "s3", "s7", "s0", "s1", "s2", "s3")
#define ATTUNE_NORMALISE(centred, scaled, stored)                                                 \
  asm volatile("1: vldmia %[x]!,{s0-s3}\n" centred ATTUNE_ONE("vmul", "%[inverse]") scaled        \
               "cmp %[x],%[end]\n vstmia %[y]!,{" stored "}\n bne 1b\n"                           \
               : [x] "+&r"(x), [y] "+&r"(y), [weight] "+&r"(weight), [bias] "+&r"(bias)           \
               : [end] "r"(end), [first] "t"(first), [offset] "t"(offset), [inverse] "t"(inverse) \
               : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")
  if constexpr (kCentred && kBias) {
    ATTUNE_NORMALISE(ATTUNE_CENTRED, ATTUNE_BIASED, "s8-s11");
  } else if constexpr (kCentred && kWeight) {
    ATTUNE_NORMALISE(ATTUNE_CENTRED, ATTUNE_WEIGHTED, "s0-s3");
  } else if constexpr (kCentred) {
    ATTUNE_NORMALISE(ATTUNE_CENTRED, "", "s0-s3");
  } else if constexpr (kBias) {
    ATTUNE_NORMALISE("", ATTUNE_BIASED, "s8-s11");
  } else if constexpr (kWeight) {
    ATTUNE_NORMALISE("", ATTUNE_WEIGHTED, "s0-s3");
  } else {
    ATTUNE_NORMALISE("", "", "s0-s3");
  }
#undef ATTUNE_ONE
#undef ATTUNE_CENTRED
#undef ATTUNE_WEIGHTED
#undef ATTUNE_BIASED
#undef ATTUNE_NORMALISE
}

#undef ATTUNE_FOUR
#undef ATTUNE_EIGHT
#undef ATTUNE_ADD
#undef ATTUNE_ADD_SQUARE
#undef ATTUNE_EIGHT_LANES
#undef ATTUNE_SUM

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail

#endif
