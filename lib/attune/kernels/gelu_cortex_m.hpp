// Exact GELU on the single-precision FPU of a Cortex-M, in assembly: four at a time, 22 instructions each with
// one rounding a term, where compilers copy every coefficient that a sum starts from and branch for each
// bound. The bits are those of activation.hpp.
#pragma once

#include <bit>
#include <cstdint>

#include <attune/kernels/sigmoids.hpp>
#include <attune/kernels/terms_cortex_m.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

// Four registers each; of p, products that are instructions of their own.
#define ATTUNE_A "s0", "s1", "s2", "s3"
#define ATTUNE_B "s4", "s5", "s6", "s7"
#define ATTUNE_C "s8", "s9", "s10", "s11"
#define ATTUNE_D "s12", "s13", "s14", "s15"
#define ATTUNE_Y "s16", "s17", "s18", "s19"
#define ATTUNE_SIZE "s20", "s21", "s22", "s23"
#define ATTUNE_P "s24", "s25", "s26", "s27"
#define ATTUNE_ALL_OF(number) number, number, number, number

#define ATTUNE_FOUR_OF(instruction, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3)                 \
  instruction " " c0 "," a0 "," b0 "\n " instruction " " c1 "," a1 "," b1 "\n " instruction " " c2 \
              "," a2 "," b2 "\n " instruction " " c3 "," a3 "," b3 "\n"
#define ATTUNE_FOUR(...) ATTUNE_FOUR_OF(__VA_ARGS__)
#define ATTUNE_FOUR_MACS_OF(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3, p0, p1, p2, p3) \
  ATTUNE_MACS(c0, a0, b0, c1, a1, b1, c2, a2, b2, c3, a3, b3, p0, p1, p2, p3)
#define ATTUNE_FOUR_MACS_AS_OF(...) ATTUNE_FOUR_MACS_OF(__VA_ARGS__)
#define ATTUNE_FOUR_MACS(...) ATTUNE_FOUR_MACS_AS_OF(__VA_ARGS__, ATTUNE_P)
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_FOUR_LESS(c, a, b) ATTUNE_FOUR("vmul.f32", ATTUNE_P, a, b) ATTUNE_FOUR("vsub.f32", c, c, ATTUNE_P)
#elif ATTUNE_FUSED
#define ATTUNE_FOUR_LESS(c, a, b) ATTUNE_FOUR("vfms.f32", c, a, b)
#else
#define ATTUNE_FOUR_LESS(c, a, b) ATTUNE_FOUR("vmls.f32", c, a, b)
#endif

// What the sums start from, each for four, and other constants.
struct GeluTable {
  float first[4][4], then[3][4], one[4];
  float half, highest, two;
};
inline constexpr GeluTable kGeluTable = [] {
  constexpr auto& r = ErrorFunctionCoefficients<float>::kRoot;
  GeluTable table{{}, {}, {1, 1, 1, 1}, 0.5f, r[0], 2};
  for (int i = 0; i < 28; ++i) (i < 16 ? table.first[i / 4] : table.then[i / 4 - 4])[i % 4] = r[1 + i / 4];
  return table;
}();

/// y = gelu(x), `fours` · 4 scalars, at least one four. `y` may be `x`.
///
/// A bound by integer saturation: the bits of |x|/2 are raised until those of the largest allowed are the
/// largest integer, and lowered again.
[[gnu::noinline]] inline void gelu_of_fours(int fours, const float* x, float* y) {
  constexpr std::int32_t kRaise =
      0x7FFFFFFF - std::bit_cast<std::int32_t>(ErrorFunctionCoefficients<float>::kLast);
  std::int32_t b0, b1, b2, b3;
  asm volatile(
      "vldmia %[constants],{s28-s30}\n"
      "1: vldmia %[x]!,{s16-s19}\n subs %[fours],%[fours],#1\n"
      // clang-format off
      ATTUNE_FOUR("vmul.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_ALL_OF("s28"))
      "vabs.f32 s20,s16\n vabs.f32 s21,s17\n vabs.f32 s22,s18\n vabs.f32 s23,s19\n"
      ATTUNE_FOUR("vadd.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_SIZE)  // max(x, 0)
      "vmov %[b0],%[b1],s20,s21\n vmov %[b2],%[b3],s22,s23\n"
      "qadd %[b0],%[b0],%[raise]\n qadd %[b1],%[b1],%[raise]\n qadd %[b2],%[b2],%[raise]\n"
      "qadd %[b3],%[b3],%[raise]\n sub %[b0],%[b0],%[raise]\n sub %[b1],%[b1],%[raise]\n"
      "sub %[b2],%[b2],%[raise]\n sub %[b3],%[b3],%[raise]\n"
      "vmov s20,s21,%[b0],%[b1]\n vmov s22,s23,%[b2],%[b3]\n"
      "vldmia %[first],{s0-s15}\n"
      ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_ALL_OF("s29"), ATTUNE_SIZE)
      ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_A, ATTUNE_SIZE)
      ATTUNE_FOUR_MACS(ATTUNE_C, ATTUNE_B, ATTUNE_SIZE)
      ATTUNE_FOUR_MACS(ATTUNE_D, ATTUNE_C, ATTUNE_SIZE)
      "vldmia %[then],{s0-s11}\n"
      ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_D, ATTUNE_SIZE)
      ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_A, ATTUNE_SIZE)
      ATTUNE_FOUR_MACS(ATTUNE_C, ATTUNE_B, ATTUNE_SIZE)
      ATTUNE_FOUR("vmul.f32", ATTUNE_D, ATTUNE_C, ATTUNE_SIZE)  // the eighth root less one
      "vldmia %[one],{s4-s7}\n"
      ATTUNE_FOUR("vadd.f32", ATTUNE_A, ATTUNE_D, ATTUNE_ALL_OF("s30"))
      ATTUNE_FOUR("vmul.f32", ATTUNE_D, ATTUNE_D, ATTUNE_A)  // the fourth
      ATTUNE_FOUR("vadd.f32", ATTUNE_A, ATTUNE_D, ATTUNE_ALL_OF("s30"))
      ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_D, ATTUNE_A)  // the square root
      ATTUNE_FOUR("vmul.f32", ATTUNE_B, ATTUNE_B, ATTUNE_B)
      ATTUNE_FOUR_LESS(ATTUNE_Y, ATTUNE_SIZE, ATTUNE_B)
      // clang-format on
      "vstmia %[y]!,{s16-s19}\n bne 1b\n"
      : [x] "+&r"(x), [y] "+&r"(y), [fours] "+&r"(fours), [b0] "=&r"(b0), [b1] "=&r"(b1), [b2] "=&r"(b2),
        [b3] "=&r"(b3)
      : [first] "r"(kGeluTable.first), [then] "r"(kGeluTable.then), [one] "r"(kGeluTable.one),
        [constants] "r"(&kGeluTable.half), [raise] "r"(kRaise)
      : "cc", "memory", ATTUNE_A, ATTUNE_B, ATTUNE_C, ATTUNE_D, ATTUNE_Y, ATTUNE_SIZE, ATTUNE_P, "s28",
        "s29", "s30");
}

#undef ATTUNE_A
#undef ATTUNE_B
#undef ATTUNE_C
#undef ATTUNE_D
#undef ATTUNE_Y
#undef ATTUNE_SIZE
#undef ATTUNE_P
#undef ATTUNE_ALL_OF
#undef ATTUNE_FOUR_OF
#undef ATTUNE_FOUR
#undef ATTUNE_FOUR_MACS_OF
#undef ATTUNE_FOUR_MACS_AS_OF
#undef ATTUNE_FOUR_MACS
#undef ATTUNE_FOUR_LESS

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail

#endif
