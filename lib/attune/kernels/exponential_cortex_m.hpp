// Exponentials of a softmax on the single-precision FPU of a Cortex-M, in assembly: eighteen to twenty
// instructions each, where compilers copy every constant that a sum starts from. The bits are those of
// elementary.hpp.
#pragma once

#include <attune/kernels/elementary.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

#if ATTUNE_FUSED
#define ATTUNE_MAC "vfma.f32 "
#define ATTUNE_MAS "vfms.f32 "
#else
#define ATTUNE_MAC "vmla.f32 "
#define ATTUNE_MAS "vmls.f32 "
#endif

// e^r of x = n·ln2 + r and z = n + kRound of two x in s12 and s13, with what the sums start from in s0 … s11:
// bits of e^r in `p0` and `p1`, of z in `z0` and `z1`. n and then p·r stand in s14 and s15.
#define ATTUNE_TWO_REDUCED(p0, p1, z0, z1)                                                                  \
  ATTUNE_MAC                                                                                                \
  "s0,s12,%[log2e]\n" ATTUNE_MAC                                                                            \
  "s1,s13,%[log2e]\n vsub.f32 s14,s0,%[round]\n vsub.f32 s15,s1,%[round]\n" ATTUNE_MAS                      \
  "s12,s14,%[high]\n" ATTUNE_MAS "s13,s15,%[high]\n" ATTUNE_MAS "s12,s14,%[low]\n" ATTUNE_MAS               \
  "s13,s15,%[low]\n" ATTUNE_MAC "s2,%[first],s12\n" ATTUNE_MAC "s3,%[first],s13\n" ATTUNE_MAC               \
  "s4,s2,s12\n" ATTUNE_MAC "s5,s3,s13\n" ATTUNE_MAC "s6,s4,s12\n" ATTUNE_MAC "s7,s5,s13\n" ATTUNE_MAC       \
  "s8,s6,s12\n" ATTUNE_MAC "s9,s7,s13\n" ATTUNE_MAC "s10,s8,s12\n" ATTUNE_MAC                               \
  "s11,s9,s13\n vmul.f32 s14,s10,s12\n vmul.f32 s15,s11,s13\n" ATTUNE_MAC "s12,s14,s12\n" ATTUNE_MAC        \
  "s13,s15,s13\n vadd.f32 s12,s12,%[one]\n vadd.f32 s13,s13,%[one]\n vmov " p0 "," p1 ",s12,s13\n vmov " z0 \
  "," z1 ",s0,s1\n"
#define ATTUNE_EXP_CONSTANTS \
  [log2e] "t"(log2e), [round] "t"(round), [high] "t"(high), [low] "t"(low), [one] "t"(one), [first] "t"(first)
#define ATTUNE_EXP_REGISTERS \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"

// The bits of e^x, of what the polynomial makes of x: zero far below, and a NaN's own.
ATTUNE_INLINE std::uint32_t unless_below(float x, std::uint32_t bits) {
  constexpr float kLowest = ExpCoefficients<float>::kLowest;
  return x >= kLowest ? bits : x < kLowest ? 0 : std::bit_cast<std::uint32_t>(x);
}

// Where n = z − kRound is from −125 to 2, e^x is a normal number that needs no other look at x.
inline constexpr std::uint32_t kLeastExponent =
    std::bit_cast<std::uint32_t>(ExpCoefficients<float>::kRound) - 125;

/// Row by row of a softmax: x becomes e^(x − shift), `pairs` · 2 scalars, as exponential() has it. The
/// constants that sums start from are loaded anew for each pair, one instruction for all of them.
[[gnu::noinline]] inline void exponentials_of_pairs(int pairs, float* x, float shift) {
  using C = ExpCoefficients<float>;
  static constexpr const float* kP = C::kPolynomial;
  static constexpr float kAddends[] = {C::kRound, C::kRound, kP[1], kP[1], kP[2], kP[2],
                                       kP[3],     kP[3],     kP[4], kP[4], kP[5], kP[5]};
  const float log2e = in_register(C::kLog2E), round = in_register(C::kRound), high = in_register(C::kLn2High),
              low = in_register(C::kLn2Low), one = in_register(1.0f), first = in_register(kP[0]);
  for (const float* const end = x + 2 * pairs; x != end;) {
    std::uint32_t p0, p1, z0, z1;
    asm volatile(
        "vldr d6,[%[x]]\n vldmia %[addends],{s0-s11}\n vsub.f32 s12,s12,%[shift]\n vsub.f32 "
        "s13,s13,%[shift]\n" ATTUNE_TWO_REDUCED("%[p0]", "%[p1]", "%[z0]", "%[z1]")
        : [p0] "=&r"(p0), [p1] "=&r"(p1), [z0] "=&r"(z0), [z1] "=&r"(z1)
        : [x] "r"(x), [addends] "r"(kAddends), [shift] "t"(shift), ATTUNE_EXP_CONSTANTS,
          "m"(*reinterpret_cast<const float(*)[2]>(x))
        : ATTUNE_EXP_REGISTERS);
    p0 += z0 << C::kMantissaBits;
    p1 += z1 << C::kMantissaBits;
    if (((z0 - kLeastExponent) | (z1 - kLeastExponent)) > 127) [[unlikely]] {
      p0 = unless_below(x[0] - shift, p0);
      p1 = unless_below(x[1] - shift, p1);
    }
    asm volatile("strd %[p0],%[p1],[%[x]],#8" : [x] "+r"(x) : [p0] "r"(p0), [p1] "r"(p1) : "memory");
  }
}

/// x becomes e^(scale·x − shift) ≤ 1, `fours` · 4 scalars, none of them a NaN without a sign. `shift` stands
/// among what the sums start from: the scaled x is added to its negative.
[[gnu::noinline]] inline void exponentials_of_fours(int fours, float* x, float scale, float shift) {
  using C = ExpCoefficients<float>;
  static constexpr const float* kP = C::kPolynomial;
  const float addends[] = {C::kRound, C::kRound, kP[1], kP[1], kP[2], kP[2], kP[3],
                           kP[3],     kP[4],     kP[4], kP[5], kP[5], shift, shift};
  const float log2e = in_register(C::kLog2E), round = in_register(C::kRound), high = in_register(C::kLn2High),
              low = in_register(C::kLn2Low), one = in_register(1.0f), first = in_register(kP[0]);
  for (const float* const end = x + 4 * fours; x != end;) {
    std::uint32_t p0, p1, p2, p3, z0, z1, z2, z3;
    bool below;
    asm volatile(
        "vldr d7,[%[x]]\n vldmia %[addends],{s0-s13}\n vnmls.f32 s12,s14,%[scale]\n vnmls.f32 "
        "s13,s15,%[scale]\n" ATTUNE_TWO_REDUCED("%[p0]", "%[p1]", "%[z0]", "%[z1]")
        "vldr d7,[%[x],#8]\n vldmia %[addends],{s0-s13}\n vnmls.f32 s12,s14,%[scale]\n vnmls.f32 "
        "s13,s15,%[scale]\n" ATTUNE_TWO_REDUCED("%[p2]", "%[p3]", "%[z2]", "%[z3]")
        "add %[p0],%[p0],%[z0],lsl #23\n add %[p1],%[p1],%[z1],lsl #23\n add %[p2],%[p2],%[z2],lsl #23\n "
        "add %[p3],%[p3],%[z3],lsl #23\n cmp %[z0],%[least]\n ittt ge\n cmpge %[z1],%[least]\n "
        "cmpge %[z2],%[least]\n cmpge %[z3],%[least]\n"
        : [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [z0] "=&r"(z0), [z1] "=&r"(z1),
          [z2] "=&r"(z2), [z3] "=&r"(z3), "=@cclt"(below)
        : [x] "r"(x), [addends] "r"(addends), [scale] "t"(scale), [least] "r"(kLeastExponent),
          ATTUNE_EXP_CONSTANTS, "m"(*reinterpret_cast<const float(*)[4]>(x)), "m"(addends)
        : ATTUNE_EXP_REGISTERS);
    if (below) [[unlikely]] {
      p0 = unless_below(multiply(x[0], scale) - shift, p0);
      p1 = unless_below(multiply(x[1], scale) - shift, p1);
      p2 = unless_below(multiply(x[2], scale) - shift, p2);
      p3 = unless_below(multiply(x[3], scale) - shift, p3);
    }
    asm volatile("strd %[p0],%[p1],[%[x]],#8\n strd %[p2],%[p3],[%[x]],#8"
                 : [x] "+&r"(x)
                 : [p0] "r"(p0), [p1] "r"(p1), [p2] "r"(p2), [p3] "r"(p3)
                 : "memory");
  }
}

#undef ATTUNE_TWO_REDUCED
#undef ATTUNE_EXP_CONSTANTS
#undef ATTUNE_EXP_REGISTERS
#undef ATTUNE_MAC
#undef ATTUNE_MAS

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail

#endif
