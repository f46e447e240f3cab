// Exponentials of a softmax on the single-precision FPU of a Cortex-M, in assembly: 17 to 20 instructions
// each. Compilers need more, since they copy every constant that a sum starts from. The bits are those of
// simd/elementary.hpp.
#pragma once

#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/simd/elementary.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

#if ATTUNE_FUSED
#define ATTUNE_MAC "vfma.f32 "
#define ATTUNE_MAS "vfms.f32 "
#else
#define ATTUNE_MAC "vmla.f32 "
#define ATTUNE_MAS "vmls.f32 "
#endif

#if ATTUNE_SPLIT_VMLA
// For the two x = n·ln2 + r in s0 and s1: the bits of e^r in `p0` and `p1`, those of z = n + kRound in `z0`
// and `z1`. VMUL and VADD leave the constants of the sums in their registers.
#define ATTUNE_TWO(op, to0, to1, a0, a1, b0, b1) op to0 "," a0 "," b0 "\n" op to1 "," a1 "," b1 "\n"
#define ATTUNE_TWO_LESS_MULTIPLES(of)                     \
  ATTUNE_TWO("vmul.f32 ", "s6", "s7", "s4", "s5", of, of) \
  ATTUNE_TWO("vsub.f32 ", "s0", "s1", "s0", "s1", "s6", "s7")
#define ATTUNE_TWO_TERMS(from0, from1, addend)                  \
  ATTUNE_TWO("vmul.f32 ", "s4", "s5", from0, from1, "s0", "s1") \
  ATTUNE_TWO("vadd.f32 ", "s4", "s5", "s4", "s5", addend, addend)
#define ATTUNE_TWO_REDUCED(p0, p1, z0, z1)                                      \
  ATTUNE_TWO("vmul.f32 ", "s2", "s3", "s0", "s1", "%[log2e]", "%[log2e]")       \
  ATTUNE_TWO("vadd.f32 ", "s2", "s3", "s2", "s3", "%[rounding]", "%[rounding]") \
  ATTUNE_TWO("vsub.f32 ", "s4", "s5", "s2", "s3", "%[rounding]", "%[rounding]") \
  ATTUNE_TWO_LESS_MULTIPLES("%[high]")                                          \
  ATTUNE_TWO_LESS_MULTIPLES("%[low]")                                           \
  ATTUNE_TWO_TERMS("%[first]", "%[first]", "%[second]")                         \
  ATTUNE_TWO_TERMS("s4", "s5", "%[third]")                                      \
  ATTUNE_TWO_TERMS("s4", "s5", "%[fourth]")                                     \
  ATTUNE_TWO_TERMS("s4", "s5", "%[fifth]")                                      \
  ATTUNE_TWO_TERMS("s4", "s5", "%[sixth]")                                      \
  ATTUNE_TWO("vmul.f32 ", "s4", "s5", "s4", "s5", "s0", "s1")                   \
  ATTUNE_TWO("vmul.f32 ", "s4", "s5", "s4", "s5", "s0", "s1")                   \
  ATTUNE_TWO("vadd.f32 ", "s0", "s1", "s0", "s1", "s4", "s5")                   \
  ATTUNE_TWO("vadd.f32 ", "s0", "s1", "s0", "s1", "%[one]", "%[one]")           \
  "vmov " p0 "," p1 ",s0,s1\n vmov " z0 "," z1 ",s2,s3\n"
#else
// For the two x = n·ln2 + r in s12 and s13: the bits of e^r in `p0` and `p1`, those of z = n + kRound in `z0`
// and `z1`. s0 … s11 hold the constants of the sums. s14 and s15 hold n, then p·r.
#define ATTUNE_TWO_REDUCED(p0, p1, z0, z1)                                                                  \
  ATTUNE_MAC                                                                                                \
  "s0,s12,%[log2e]\n" ATTUNE_MAC                                                                            \
  "s1,s13,%[log2e]\n vsub.f32 s14,s0,%[rounding]\n vsub.f32 s15,s1,%[rounding]\n" ATTUNE_MAS                \
  "s12,s14,%[high]\n" ATTUNE_MAS "s13,s15,%[high]\n" ATTUNE_MAS "s12,s14,%[low]\n" ATTUNE_MAS               \
  "s13,s15,%[low]\n" ATTUNE_MAC "s2,%[first],s12\n" ATTUNE_MAC "s3,%[first],s13\n" ATTUNE_MAC               \
  "s4,s2,s12\n" ATTUNE_MAC "s5,s3,s13\n" ATTUNE_MAC "s6,s4,s12\n" ATTUNE_MAC "s7,s5,s13\n" ATTUNE_MAC       \
  "s8,s6,s12\n" ATTUNE_MAC "s9,s7,s13\n" ATTUNE_MAC "s10,s8,s12\n" ATTUNE_MAC                               \
  "s11,s9,s13\n vmul.f32 s14,s10,s12\n vmul.f32 s15,s11,s13\n" ATTUNE_MAC "s12,s14,s12\n" ATTUNE_MAC        \
  "s13,s15,s13\n vadd.f32 s12,s12,%[one]\n vadd.f32 s13,s13,%[one]\n vmov " p0 "," p1 ",s12,s13\n vmov " z0 \
  "," z1 ",s0,s1\n"
#endif
#define ATTUNE_EXP_CONSTANTS                                                                      \
  [log2e] "t"(log2e), [rounding] "t"(rounding), [high] "t"(high), [low] "t"(low), [one] "t"(one), \
      [first] "t"(first)
#define ATTUNE_EXP_REGISTERS \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"

// The bits of e^x from those of the polynomial: zero below kLowest, and NaN for NaN.
ATTUNE_INLINE std::uint32_t unless_below(float x, std::uint32_t bits) {
  constexpr float kLowest = ExpCoefficients<float>::kLowest;
  return x >= kLowest ? bits : x < kLowest ? 0 : std::bit_cast<std::uint32_t>(x);
}

// For n = z − kRound between −125 and 2, e^x is a normal number and x needs no check.
inline constexpr std::uint32_t kMinExponent =
    std::bit_cast<std::uint32_t>(ExpCoefficients<float>::kRound) - 125;

/// x[2 · pairs] becomes e^(x − shift), with the bits of exponential(). With VMLA and VFMA, each pair loads
/// the constants of the sums again, by one instruction.
[[gnu::noinline]] inline void exponentials_of_pairs(int pairs, float* x, float shift) {
  using C = ExpCoefficients<float>;
  static constexpr const float* kP = C::kPolynomial;
  const float log2e = in_register(C::kLog2E), rounding = in_register(C::kRound),
              high = in_register(C::kLn2High), low = in_register(C::kLn2Low), one = in_register(1.0f),
              first = in_register(kP[0]);
#if ATTUNE_SPLIT_VMLA
  const float second = in_register(kP[1]), third = in_register(kP[2]), fourth = in_register(kP[3]),
              fifth = in_register(kP[4]), sixth = in_register(kP[5]);
#else
  static constexpr float kAddends[] = {C::kRound, C::kRound, kP[1], kP[1], kP[2], kP[2],
                                       kP[3],     kP[3],     kP[4], kP[4], kP[5], kP[5]};
#endif
  for (const float* const end = x + 2 * pairs; x != end;) {
    std::uint32_t p0, p1, z0, z1;
#if ATTUNE_SPLIT_VMLA
    asm volatile(
        "vldr s0,[%[x]]\n vldr s1,[%[x],#4]\n vsub.f32 s0,s0,%[shift]\n vsub.f32 "
        "s1,s1,%[shift]\n" ATTUNE_TWO_REDUCED("%[p0]", "%[p1]", "%[z0]", "%[z1]")
        : [p0] "=&r"(p0), [p1] "=&r"(p1), [z0] "=&r"(z0), [z1] "=&r"(z1)
        : [x] "r"(x), [shift] "t"(shift), [second] "t"(second), [third] "t"(third), [fourth] "t"(fourth),
          [fifth] "t"(fifth), [sixth] "t"(sixth), ATTUNE_EXP_CONSTANTS,
          "m"(*reinterpret_cast<const float(*)[2]>(x))
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7");
#else
    asm volatile(
        "vldr d6,[%[x]]\n vldmia %[addends],{s0-s11}\n vsub.f32 s12,s12,%[shift]\n vsub.f32 "
        "s13,s13,%[shift]\n" ATTUNE_TWO_REDUCED("%[p0]", "%[p1]", "%[z0]", "%[z1]")
        : [p0] "=&r"(p0), [p1] "=&r"(p1), [z0] "=&r"(z0), [z1] "=&r"(z1)
        : [x] "r"(x), [addends] "r"(kAddends), [shift] "t"(shift), ATTUNE_EXP_CONSTANTS,
          "m"(*reinterpret_cast<const float(*)[2]>(x))
        : ATTUNE_EXP_REGISTERS);
#endif
    p0 += z0 << C::kMantissaBits;
    p1 += z1 << C::kMantissaBits;
    if (((z0 - kMinExponent) | (z1 - kMinExponent)) > 127) [[unlikely]] {
      p0 = unless_below(x[0] - shift, p0);
      p1 = unless_below(x[1] - shift, p1);
    }
    asm volatile("strd %[p0],%[p1],[%[x]],#8" : [x] "+r"(x) : [p0] "r"(p0), [p1] "r"(p1) : "memory");
  }
}

#undef ATTUNE_TWO
#undef ATTUNE_TWO_LESS_MULTIPLES
#undef ATTUNE_TWO_TERMS
#undef ATTUNE_TWO_REDUCED
#undef ATTUNE_EXP_CONSTANTS
#undef ATTUNE_EXP_REGISTERS

// The constants of exponentials_of_fours(), in the order of their loads.
struct ExponentialTable {
  float log2e, rounding, high, low, first, one, lowest;
  std::uint32_t least_exponent;
  float addends[20];  // constants of the polynomial's sums, each four times
};
inline constexpr ExponentialTable kExponentialTable = [] {
  using C = ExpCoefficients<float>;
  static_assert(std::size(C::kPolynomial) == 6);
  ExponentialTable table{.log2e = C::kLog2E,
                         .rounding = C::kRound,
                         .high = C::kLn2High,
                         .low = C::kLn2Low,
                         .first = C::kPolynomial[0],
                         .one = 1,
                         .lowest = C::kLowest,
                         .least_exponent = kMinExponent,
                         .addends = {}};
  for (int i = 0; i < 20; ++i) table.addends[i] = C::kPolynomial[1 + i / 4];
  return table;
}();

#define ATTUNE_FOUR_OF(op, d0, d1, d2, d3, a0, a1, a2, a3, b0, b1, b2, b3) \
  op d0 "," a0 "," b0 "\n" op d1 "," a1 "," b1 "\n" op d2 "," a2 "," b2 "\n" op d3 "," a3 "," b3 "\n"
#define ATTUNE_FOUR(...) ATTUNE_FOUR_OF(__VA_ARGS__)
#define ATTUNE_ALL_OF(x) x, x, x, x
#define ATTUNE_R "s0", "s1", "s2", "s3"
#define ATTUNE_A "s4", "s5", "s6", "s7"
#define ATTUNE_B "s8", "s9", "s10", "s11"
#define ATTUNE_C "s12", "s13", "s14", "s15"
#define ATTUNE_D "s16", "s17", "s18", "s19"
#define ATTUNE_E "s20", "s21", "s22", "s23"
// scale·x − shift for the next four x.
#define ATTUNE_FOUR_SCALED ATTUNE_FOUR("vnmls.f32 ", ATTUNE_R, ATTUNE_B, ATTUNE_ALL_OF("s31"))
// e^(scale·x − shift) for the next four x, in r8 … r11, for n from −125 on; z = n + kRound in r4 … r7.
#define ATTUNE_FOUR_EXPONENTIALS \
  "vldmia r1,{s8-s11}\n vldmia sp,{s0-s7}\n" ATTUNE_FOUR_SCALED ATTUNE_FOUR(                                 \
      ATTUNE_MAC, ATTUNE_A, ATTUNE_R, ATTUNE_ALL_OF("s24")) "vmov r4,r5,s4,s5\n vmov r6,r7,s6,s7\n"          \
      ATTUNE_FOUR("vsub.f32 ", ATTUNE_B, ATTUNE_A, ATTUNE_ALL_OF("s25"))                                     \
          ATTUNE_FOUR(ATTUNE_MAS, ATTUNE_R, ATTUNE_B, ATTUNE_ALL_OF("s26")) ATTUNE_FOUR(                     \
              ATTUNE_MAS, ATTUNE_R, ATTUNE_B, ATTUNE_ALL_OF("s27")) "vldmia r2,{s4-s23}\n"                   \
              ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_A, ATTUNE_R, ATTUNE_ALL_OF("s28"))                              \
                  ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_B, ATTUNE_A, ATTUNE_R)                                      \
                      ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_C, ATTUNE_B, ATTUNE_R)                                  \
                          ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_D, ATTUNE_C, ATTUNE_R)                              \
                              ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_E, ATTUNE_D, ATTUNE_R)                          \
                                  ATTUNE_FOUR("vmul.f32 ", ATTUNE_E, ATTUNE_E, ATTUNE_R)                     \
                                      ATTUNE_FOUR(ATTUNE_MAC, ATTUNE_R, ATTUNE_E, ATTUNE_R) ATTUNE_FOUR(     \
                                          "vadd.f32 ", ATTUNE_R, ATTUNE_R,                                   \
                                          ATTUNE_ALL_OF("s29")) "vmov r8,r9,s0,s1\n vmov r10,r11,s2,s3\n "   \
                                                                "add r8,r8,r4,lsl #23\n add r9,r9,r5,lsl "   \
                                                                "#23\n add r10,r10,r6,lsl #23\n add "        \
                                                                "r11,r11,r7,lsl #23\n"
// Keeps the bits of e^x, unless x is below the limit (zero) or a NaN (x itself).
#define ATTUNE_UNLESS_BELOW(x, bits)                                \
  "vcmp.f32 " x ",s30\n vmrs APSR_nzcv,fpscr\n it mi\n movmi " bits \
  ",#0\n it vs\n "                                                  \
  "vmovvs " bits "," x "\n"

/// x[4 · fours] becomes e^(scale·x − shift) ≤ 1. No x may be a NaN with a clear sign. `bounded` promises an
/// even number of fours, no NaN, and scale·x − shift ≥ −86.9.
[[gnu::naked]] inline void exponentials_of_fours(int, float*, const ExponentialTable&, bool, float, float) {
  asm("push {r4-r11,lr}\n vpush {d8-d15}\n vldmia r2!,{s24-s30}\n ldr r12,[r2],#4\n vmov.f32 s31,s0\n "
      "vmov.f32 s0,s1\n vmov.f32 s2,s1\n vmov.f32 s3,s1\n vmov.f32 s4,s25\n vmov.f32 s5,s25\n "
      "vmov.f32 s6,s25\n vmov.f32 s7,s25\n vpush {d0-d3}\n cmp r3,#0\n beq 2f\n"
      "1: " ATTUNE_FOUR_EXPONENTIALS "stmia r1!,{r8-r11}\n" ATTUNE_FOUR_EXPONENTIALS
      "subs r0,r0,#2\n stmia r1!,{r8-r11}\n bne 1b\n b 4f\n"
      "2: " ATTUNE_FOUR_EXPONENTIALS
      "cmp r4,r12\n ittt ge\n cmpge r5,r12\n cmpge r6,r12\n cmpge r7,r12\n blt 5f\n"
      "3: subs r0,r0,#1\n stmia r1!,{r8-r11}\n bne 2b\n"
      "4: add sp,sp,#32\n vpop {d8-d15}\n pop {r4-r11,pc}\n"
      "5: vldmia r1,{s8-s11}\n vldmia sp,{s0-s3}\n" ATTUNE_FOUR_SCALED ATTUNE_UNLESS_BELOW("s0", "r8")
          ATTUNE_UNLESS_BELOW("s1", "r9") ATTUNE_UNLESS_BELOW("s2", "r10")
              ATTUNE_UNLESS_BELOW("s3", "r11") "b 3b\n");
}

#undef ATTUNE_FOUR_OF
#undef ATTUNE_FOUR
#undef ATTUNE_ALL_OF
#undef ATTUNE_R
#undef ATTUNE_A
#undef ATTUNE_B
#undef ATTUNE_C
#undef ATTUNE_D
#undef ATTUNE_E
#undef ATTUNE_FOUR_SCALED
#undef ATTUNE_FOUR_EXPONENTIALS
#undef ATTUNE_UNLESS_BELOW
#undef ATTUNE_MAC
#undef ATTUNE_MAS

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
