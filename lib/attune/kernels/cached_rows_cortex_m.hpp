// The kernels of cached_rows.hpp on the single-precision FPU of a Cortex-M, in assembly: sixteen sums in
// registers and multiple loads, which compilers do not find, and lengths at run time, so that one copy serves
// all shapes. The bits are those of the portable code.
#pragma once

#include <limits>

#include <attune/kernels/exponential_cortex_m.hpp>
#include <attune/kernels/registers_cortex_m.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

#if ATTUNE_FUSED
#define ATTUNE_MAC "vfma.f32 "
#else
#define ATTUNE_MAC "vmla.f32 "
#endif
#define ATTUNE_EIGHT(c0, c1, c2, c3, c4, c5, c6, c7, a, b0, b1, b2, b3, b4, b5, b6, b7)                  \
  ATTUNE_MAC c0 "," a "," b0 "\n" ATTUNE_MAC c1 "," a "," b1 "\n" ATTUNE_MAC c2 "," a "," b2             \
                "\n" ATTUNE_MAC c3 "," a "," b3 "\n" ATTUNE_MAC c4 "," a "," b4 "\n" ATTUNE_MAC c5 "," a \
                "," b5 "\n" ATTUNE_MAC c6 "," a "," b6 "\n" ATTUNE_MAC c7 "," a "," b7 "\n"
// s16 … s31 += a · the next sixteen scalars at `from`, which moves on.
#define ATTUNE_SIXTEEN(a, from)                                                                            \
  "vldmia " from "!,{s0-s7}\n" ATTUNE_EIGHT(                                                               \
      "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", a, "s0", "s1", "s2", "s3", "s4", "s5", "s6", \
      "s7") "vldmia " from                                                                                 \
            "!,{s0-s7}\n" ATTUNE_EIGHT("s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", a, "s0",    \
                                       "s1", "s2", "s3", "s4", "s5", "s6", "s7")
#define ATTUNE_ALL_REGISTERS                                                                            \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", \
      "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", \
      "s30", "s31"

/// block_scores() of a depth that is one block of a sum.
[[gnu::noinline]] inline void scores_of_blocks(int blocks, const float* query, const float* keys, float scale,
                                               float* scores, int depth) {
  do {
    const float* factors = query;
    int fours = depth / 4, ones = depth % 4;
    asm volatile(
        "vmov d8,%[zero],%[zero]\n vmov d9,%[zero],%[zero]\n vmov d10,%[zero],%[zero]\n "
        "vmov d11,%[zero],%[zero]\n vmov d12,%[zero],%[zero]\n vmov d13,%[zero],%[zero]\n "
        "vmov d14,%[zero],%[zero]\n vmov d15,%[zero],%[zero]\n cmp %[fours],#0\n beq 2f\n"
        "1: vldmia %[factors]!,{s8-s11}\n subs %[fours],%[fours],#1\n" ATTUNE_SIXTEEN("s8", "%[keys]")
            ATTUNE_SIXTEEN("s9", "%[keys]") ATTUNE_SIXTEEN("s10", "%[keys]") ATTUNE_SIXTEEN("s11", "%[keys]")
        "bne 1b\n"
        "2: cmp %[ones],#0\n beq 4f\n"
        "3: vldmia %[factors]!,{s8}\n subs %[ones],%[ones],#1\n" ATTUNE_SIXTEEN("s8", "%[keys]") "bne 3b\n"
        "4: vmov s0,%[scale]\n"
        "vmul.f32 s16,s16,s0\n vmul.f32 s17,s17,s0\n vmul.f32 s18,s18,s0\n vmul.f32 s19,s19,s0\n "
        "vmul.f32 s20,s20,s0\n vmul.f32 s21,s21,s0\n vmul.f32 s22,s22,s0\n vmul.f32 s23,s23,s0\n "
        "vmul.f32 s24,s24,s0\n vmul.f32 s25,s25,s0\n vmul.f32 s26,s26,s0\n vmul.f32 s27,s27,s0\n "
        "vmul.f32 s28,s28,s0\n vmul.f32 s29,s29,s0\n vmul.f32 s30,s30,s0\n vmul.f32 s31,s31,s0\n "
        "vstmia %[scores]!,{s16-s31}\n"
        : [factors] "+&r"(factors), [keys] "+&r"(keys), [fours] "+&r"(fours), [ones] "+&r"(ones),
          [scores] "+&r"(scores)
        : [zero] "r"(0), [scale] "r"(scale)
        : "cc", "memory", ATTUNE_ALL_REGISTERS);
  } while (--blocks > 0);
}

/// add_weighted_rows() of sixteen columns of rows that are `step` bytes apart.
[[gnu::noinline]] inline void add_sixteen_columns(int count, const float* weights, const float* rows,
                                                  float* sums, int step) {
  asm volatile(
      "vldmia %[sums],{s16-s31}\n"
      "1: vldmia %[weights]!,{s8}\n subs %[count],%[count],#1\n" ATTUNE_SIXTEEN(
          "s8", "%[rows]") "add %[rows],%[rows],%[step]\n bne 1b\n vstmia %[sums],{s16-s31}\n"
      : [weights] "+&r"(weights), [rows] "+&r"(rows), [count] "+&r"(count)
      : [sums] "r"(sums), [step] "r"(step - 64)
      : "cc", "memory", ATTUNE_ALL_REGISTERS);
}
/// add_weighted_rows() of rows of eight columns, eight of them at a time.
[[gnu::noinline]] inline void add_rows_of_eight(int eights, const float* weights, const float* rows,
                                                float* sums) {
#define ATTUNE_TWO_ROWS(a, b)                                                                              \
  "vldmia %[rows]!,{s8-s23}\n" ATTUNE_EIGHT("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", a, "s8", "s9", \
                                            "s10", "s11", "s12", "s13", "s14", "s15")                      \
      ATTUNE_EIGHT("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", b, "s16", "s17", "s18", "s19", "s20",   \
                   "s21", "s22", "s23")
  asm volatile(
      "vldmia %[sums],{s0-s7}\n"
      "1: vldmia %[weights]!,{s24-s31}\n subs %[eights],%[eights],#1\n" ATTUNE_TWO_ROWS("s24", "s25")
          ATTUNE_TWO_ROWS("s26", "s27") ATTUNE_TWO_ROWS("s28", "s29")
              ATTUNE_TWO_ROWS("s30", "s31") "bne 1b\n vstmia %[sums],{s0-s7}\n"
      : [weights] "+&r"(weights), [rows] "+&r"(rows), [eights] "+&r"(eights)
      : [sums] "r"(sums)
      : "cc", "memory", ATTUNE_ALL_REGISTERS);
#undef ATTUNE_TWO_ROWS
}

/// Σ of `blocks` · 16 scalars, in the order of reduce.hpp.
ATTUNE_INLINE float sum_of_blocks(int blocks, const float* x) {
#define ATTUNE_ADD(lane, value) "vadd.f32 " lane "," lane "," value "\n"
  register float s0 asm("s0");
  asm volatile(
      "vldmia %[x]!,{s0-s15}\n b 2f\n"
      "1: vldmia %[x]!,{s16-s31}\n" ATTUNE_ADD("s0", "s16") ATTUNE_ADD("s1", "s17") ATTUNE_ADD("s2", "s18")
          ATTUNE_ADD("s3", "s19") ATTUNE_ADD("s4", "s20") ATTUNE_ADD("s5", "s21") ATTUNE_ADD("s6", "s22")
              ATTUNE_ADD("s7", "s23") ATTUNE_ADD("s8", "s24") ATTUNE_ADD("s9", "s25") ATTUNE_ADD("s10", "s26")
                  ATTUNE_ADD("s11", "s27") ATTUNE_ADD("s12", "s28") ATTUNE_ADD("s13", "s29")
                      ATTUNE_ADD("s14", "s30") ATTUNE_ADD(
                          "s15", "s31") "2: subs %[blocks],%[blocks],#1\n bne 1b\n" ATTUNE_ADD("s0", "s8")
                          ATTUNE_ADD("s1", "s9") ATTUNE_ADD("s2", "s10") ATTUNE_ADD("s3", "s11")
                              ATTUNE_ADD("s4", "s12") ATTUNE_ADD("s5", "s13") ATTUNE_ADD("s6", "s14")
                                  ATTUNE_ADD("s7", "s15") ATTUNE_ADD("s0", "s4") ATTUNE_ADD("s1", "s5")
                                      ATTUNE_ADD("s2", "s6") ATTUNE_ADD("s3", "s7") ATTUNE_ADD("s0", "s2")
                                          ATTUNE_ADD("s1", "s3") ATTUNE_ADD("s0", "s1")
      : "=&t"(s0), [x] "+&r"(x), [blocks] "+&r"(blocks)
      :
      : "cc", "memory", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
        "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27",
        "s28", "s29", "s30", "s31");
#undef ATTUNE_ADD
  return s0;
}

/// block_softmax().
[[gnu::noinline]] inline void softmax_of_blocks(int blocks, float* row) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float best = kMinusInfinity;
  for (int i = 0; i < blocks; ++i) best = maximum(largest_of_many(row + i * kManyRegisters), best);
  exponentials_of_pairs(blocks * kManyRegisters / 2, row, kMinusInfinity < best ? best : 0.0f);
  const float total = sum_of_blocks(blocks, row);
  const float inverse = total < 0.5f ? 0.0f : 1 / total;
  for (int i = 0; i < blocks; ++i, row += kManyRegisters) {
    ManyRegisters many = load_many(row);
    ATTUNE_UNROLL for (float& lane : many.lane) lane = multiply(lane, inverse);
    store_many(row, many);
  }
}

#undef ATTUNE_MAC
#undef ATTUNE_EIGHT
#undef ATTUNE_SIXTEEN
#undef ATTUNE_ALL_REGISTERS

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail

#endif
