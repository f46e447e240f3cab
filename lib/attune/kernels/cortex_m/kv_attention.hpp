// The kernels of ops/kv_attention.hpp on the single-precision FPU of a Cortex-M, in assembly. They keep
// sixteen sums in registers and use multiple loads, which compilers do not. Lengths are run-time arguments,
// so one copy serves all shapes. The bits are those of the portable code.
#pragma once

#include <limits>

#include <attune/kernels/cortex_m/exponential.hpp>
#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/cortex_m/registers.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// Eight sums += a · b. A product with an instruction of its own overwrites b.
#define ATTUNE_EIGHT(c0, c1, c2, c3, c4, c5, c6, c7, a, b0, b1, b2, b3, b4, b5, b6, b7) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, b0, b1, b2, b3)               \
  ATTUNE_MACS(c4, a, b4, c5, a, b5, c6, a, b6, c7, a, b7, b4, b5, b6, b7)
#define ATTUNE_EIGHT_PRODUCTS(c0, c1, c2, c3, c4, c5, c6, c7, a, b0, b1, b2, b3, b4, b5, b6, b7) \
  "vmul.f32 " c0 "," a "," b0 "\n vmul.f32 " c1 "," a "," b1 "\n vmul.f32 " c2 "," a "," b2      \
  "\n vmul.f32 " c3 "," a "," b3 "\n vmul.f32 " c4 "," a "," b4 "\n vmul.f32 " c5 "," a "," b5   \
  "\n vmul.f32 " c6 "," a "," b6 "\n vmul.f32 " c7 "," a "," b7 "\n"
// s16 … s31 += a · from[0 … 15]; advances `from`.
#define ATTUNE_SIXTEEN(a, from) ATTUNE_SIXTEEN_OF(ATTUNE_EIGHT, a, from)
#define ATTUNE_SIXTEEN_OF(eight, a, from)                                                                  \
  "vldmia " from "!,{s0-s7}\n" eight(                                                                      \
      "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", a, "s0", "s1", "s2", "s3", "s4", "s5", "s6", \
      "s7") "vldmia " from "!,{s0-s7}\n" eight("s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", a,  \
                                               "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7")
#define ATTUNE_ALL_REGISTERS                                                                            \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", \
      "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", \
      "s30", "s31"

/// block_scores() for a depth of one block of a sum.
[[gnu::noinline]] inline void scores_of_blocks(int blocks, const float* query, const float* keys,
                                               float* scores, int depth) {
  do {
    const float* factors = query;
    int eights = depth / 8, ones = depth % 8;
    asm volatile(
        "vldmia %[zeros],{s16-s31}\n cmp %[eights],#0\n beq 2f\n"
        "1: vldmia %[factors]!,{s8-s15}\n subs %[eights],%[eights],#1\n" ATTUNE_SIXTEEN("s8", "%[keys]")
            ATTUNE_SIXTEEN("s9", "%[keys]") ATTUNE_SIXTEEN("s10", "%[keys]") ATTUNE_SIXTEEN("s11", "%[keys]")
                ATTUNE_SIXTEEN("s12", "%[keys]") ATTUNE_SIXTEEN("s13", "%[keys]")
                    ATTUNE_SIXTEEN("s14", "%[keys]") ATTUNE_SIXTEEN("s15", "%[keys]")
        "bne 1b\n"
        "2: cmp %[ones],#0\n beq 4f\n"
        "3: vldmia %[factors]!,{s8}\n subs %[ones],%[ones],#1\n" ATTUNE_SIXTEEN("s8", "%[keys]") "bne 3b\n"
        "4: vstmia %[scores]!,{s16-s31}\n"
        : [factors] "+&r"(factors), [keys] "+&r"(keys), [eights] "+&r"(eights), [ones] "+&r"(ones),
          [scores] "+&r"(scores)
        : [zeros] "r"(&kNoSums[0])
        : "cc", "memory", ATTUNE_ALL_REGISTERS);
  } while (--blocks > 0);
}

/// The same for a depth of eight, with the factors in registers. Sums start from their first product instead
/// of zero. Only a sum of products that are all −0 differs, and −0 has the exponential of 0.
[[gnu::noinline]] inline void scores_of_eight(int blocks, const float* query, const float* keys,
                                              float* scores) {
  asm volatile(
      "vldmia %[query],{s8-s15}\n"
      "1: subs %[blocks],%[blocks],#1\n" ATTUNE_SIXTEEN_OF(ATTUNE_EIGHT_PRODUCTS, "s8", "%[keys]")
          ATTUNE_SIXTEEN("s9", "%[keys]") ATTUNE_SIXTEEN("s10", "%[keys]") ATTUNE_SIXTEEN("s11", "%[keys]")
              ATTUNE_SIXTEEN("s12", "%[keys]") ATTUNE_SIXTEEN("s13", "%[keys]") ATTUNE_SIXTEEN(
                  "s14", "%[keys]") ATTUNE_SIXTEEN("s15", "%[keys]") "vstmia %[scores]!,{s16-s31}\n bne 1b\n"
      : [blocks] "+&r"(blocks), [keys] "+&r"(keys), [scores] "+&r"(scores)
      : [query] "r"(query)
      : "cc", "memory", ATTUNE_ALL_REGISTERS);
}

/// add_weighted_rows() for sixteen columns, with rows `step` bytes apart.
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
/// add_weighted_rows() for rows of eight columns, eight rows at a time.
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

/// Σ x[16 · blocks], in the order of ops/reduce.hpp.
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

/// The bits of the largest of x[16 · blocks]; a NaN if one with a clear sign is among them. Bits of floats
/// compare as integers, those of negative numbers in reverse. So the comparison is unsigned up to the first
/// positive number, and signed from there on: six instructions for four scalars.
[[gnu::naked]] inline std::int32_t largest_bits(int, const float*) {
#define ATTUNE_ANY_OF_FOUR(yes, no, it, a, b, c, d, to)                                                     \
  "cmp " a ",r12\n " it "\n cmp" no " " b ",r12\n cmp" no " " c ",r12\n cmp" no " " d ",r12\n b" yes " " to \
  "\n"
#define ATTUNE_TAKE(a, when) "cmp " a ",r12\n it " when "\n mov" when " r12," a "\n"
#define ATTUNE_TAKE_FOUR(a, b, c, d, when) \
  ATTUNE_TAKE(a, when) ATTUNE_TAKE(b, when) ATTUNE_TAKE(c, when) ATTUNE_TAKE(d, when)
  asm("push {r4-r11}\n ldr r12,[r1]\n lsls r0,r0,#1\n cmp r12,#0\n blt 5f\n"
      "1: ldmia r1!,{r4-r11}\n" ATTUNE_ANY_OF_FOUR("gt", "le", "ittt le", "r4", "r5", "r6", "r7", "3f")
      "2: " ATTUNE_ANY_OF_FOUR("gt", "le", "ittt le", "r8", "r9", "r10", "r11", "4f")
      "subs r0,r0,#1\n bne 1b\n b 8f\n"
      "3: " ATTUNE_TAKE_FOUR("r4", "r5", "r6", "r7", "gt") "b 2b\n"
      "4: " ATTUNE_TAKE_FOUR("r8", "r9", "r10", "r11", "gt") "subs r0,r0,#1\n bne 1b\n b 8f\n"
      "5: ldmia r1!,{r4-r11}\n" ATTUNE_ANY_OF_FOUR("lo", "hs", "ittt hs", "r4", "r5", "r6", "r7", "7f")
          ATTUNE_ANY_OF_FOUR("lo", "hs", "ittt hs", "r8", "r9", "r10", "r11", "7f")
      "6: subs r0,r0,#1\n bne 5b\n b 8f\n"
      "7: " ATTUNE_TAKE_FOUR("r4", "r5", "r6", "r7", "lo") ATTUNE_TAKE_FOUR("r8", "r9", "r10", "r11", "lo")
      "cmp r12,#0\n blt 6b\n sub r1,r1,#32\n b 1b\n"
      "8: mov r0,r12\n pop {r4-r11}\n bx lr\n");
#undef ATTUNE_ANY_OF_FOUR
#undef ATTUNE_TAKE
#undef ATTUNE_TAKE_FOUR
}

/// block_softmax(), with bounded blocks from `first` up to `end`.
[[gnu::noinline]] inline void softmax_of_blocks(int blocks, float* row, float scale, int first, int end) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const float best = std::bit_cast<float>(largest_bits(blocks, row));
  const float shift = kMinusInfinity < best ? multiply(best, scale) : 0.0f;
  const auto exponentials = [&](int from, int to, bool bounded) ATTUNE_INLINE_LAMBDA {
    if (from == to) return;
    exponentials_of_fours((to - from) * kManyRegisters / 4, row + from * kManyRegisters, kExponentialTable,
                          bounded, scale, shift);
  };
  exponentials(0, first, false);
  exponentials(first, end, true);
  exponentials(end, blocks, false);
  const float total = sum_of_blocks(blocks, row);
  float inverse = total < 0.5f ? 0.0f : 1 / total;
  if (best != best) inverse = best;
#define ATTUNE_SCALE(lane) "vmul.f32 " lane "," lane ",%[inverse]\n"
  asm volatile("1: vldmia %[row],{s16-s31}\n subs %[blocks],%[blocks],#1\n" ATTUNE_SCALE("s16")
                   ATTUNE_SCALE("s17") ATTUNE_SCALE("s18") ATTUNE_SCALE("s19") ATTUNE_SCALE("s20")
                       ATTUNE_SCALE("s21") ATTUNE_SCALE("s22") ATTUNE_SCALE("s23") ATTUNE_SCALE("s24")
                           ATTUNE_SCALE("s25") ATTUNE_SCALE("s26") ATTUNE_SCALE("s27") ATTUNE_SCALE("s28")
                               ATTUNE_SCALE("s29") ATTUNE_SCALE("s30")
                                   ATTUNE_SCALE("s31") "vstmia %[row]!,{s16-s31}\n bne 1b\n"
               : [row] "+&r"(row), [blocks] "+&r"(blocks)
               : [inverse] "t"(inverse)
               : "cc", "memory", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26",
                 "s27", "s28", "s29", "s30", "s31");
#undef ATTUNE_SCALE
}

#undef ATTUNE_EIGHT
#undef ATTUNE_EIGHT_PRODUCTS
#undef ATTUNE_SIXTEEN
#undef ATTUNE_SIXTEEN_OF
#undef ATTUNE_ALL_REGISTERS

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
