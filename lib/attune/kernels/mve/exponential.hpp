// e^x on a Cortex-M55's vector unit (MVE, Helium), with the bits of simd/elementary.hpp. Coefficients are in
// integer registers, which MVE's instructions accept; eight vector registers cannot hold them.
//
// The result is a normal number, so adding n to the exponent of e^r multiplies by 2ⁿ. MVE makes only one NaN,
// with zeros as low bits. Adding the bits of z to it leaves a NaN.
#pragma once

#include <attune/kernels/simd/elementary.hpp>

#if ATTUNE_MVE && ATTUNE_FUSED

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

using ExpOfFloat = ExpCoefficients<float>;

// The constants of the assembly below: loaded into integer registers in this order, then into vectors.
struct ExpTable {
  float of_integer_registers[10];
  std::uint32_t exponent_one;  // a factor that moves an integer to the exponent
  float rounding[4], first[4], lowest[4];
};
inline constexpr ExpTable kExpTable = {
    {ExpOfFloat::kLog2E, ExpOfFloat::kRound, -ExpOfFloat::kLn2High, -ExpOfFloat::kLn2Low,
     ExpOfFloat::kPolynomial[1], ExpOfFloat::kPolynomial[2], ExpOfFloat::kPolynomial[3],
     ExpOfFloat::kPolynomial[4], ExpOfFloat::kPolynomial[5], 1.0f},
    1u << ExpOfFloat::kMantissaBits,
    {ExpOfFloat::kRound, ExpOfFloat::kRound, ExpOfFloat::kRound, ExpOfFloat::kRound},
    {ExpOfFloat::kPolynomial[0], ExpOfFloat::kPolynomial[0], ExpOfFloat::kPolynomial[0],
     ExpOfFloat::kPolynomial[0]},
    {ExpOfFloat::kLowest, ExpOfFloat::kLowest, ExpOfFloat::kLowest, ExpOfFloat::kLowest}};

#define ATTUNE_LOAD_EXP_TABLE                                               \
  "vldrw.u32 q3,[r1,#44]\n vldrw.u32 q4,[r1,#60]\n vldrw.u32 q5,[r1,#76]\n" \
  "ldmia r1,{r1,r2,r3,r4,r5,r6,r8,r9,r10,r11,r12}\n"
// x ← e^(x − largest) for a vector register. Clobbers q1 and q2.
#define ATTUNE_EXP(x, largest)                                                                         \
  "vsub.f32 " x "," x "," largest "\n vcmp.f32 gt,q5," x "\n vmov q1,q3\n vfma.f32 q1," x              \
  ",r1\n vsub.f32 q2,q1,r2\n"                                                                          \
  "vfma.f32 " x ",q2,r3\n vfma.f32 " x ",q2,r4\n vmov q2,q4\n vfmas.f32 q2," x ",r5\n vfmas.f32 q2," x \
  ",r6\n"                                                                                              \
  "vfmas.f32 q2," x ",r8\n vfmas.f32 q2," x ",r9\n vfmas.f32 q2," x ",r10\n vmul.f32 q2,q2," x         \
  "\n"                                                                                                 \
  "vfma.f32 " x ",q2," x "\n vadd.f32 " x "," x ",r11\n vmla.u32 " x ",q1,r12\n vpst\n vmovt.i32 " x ",#0\n"

// Assembly here overwrites the predicates of vectors. Clang has no name for them among clobbers, but assumes
// that no call keeps them.
#if defined(__clang__)
#define ATTUNE_OVERWRITES_PREDICATES [[gnu::noinline]] inline
#define ATTUNE_PREDICATES "cc"
#else
#define ATTUNE_OVERWRITES_PREDICATES ATTUNE_INLINE
#define ATTUNE_PREDICATES "p0"
#endif

/// x[4 · kPackets] becomes e^(x − largest).
template <int kPackets>
ATTUNE_OVERWRITES_PREDICATES void exponentials_in_place(float* x, float largest) {
  register float32x4_t q6 asm("q6") = vdupq_n_f32(largest);
  register const ExpTable* r1 asm("r1") = &kExpTable;
  asm volatile(ATTUNE_LOAD_EXP_TABLE
               "mov lr,%[packets]\n dls lr,lr\n"
               "1:\n vldrw.u32 q0,[%[x]]\n" ATTUNE_EXP("q0", "q6") "vstrw.u32 q0,[%[x]],#16\n le lr,1b"
               : [x] "+r"(x), "+r"(r1)
               : [packets] "i"(kPackets), "w"(q6)
               : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", "q2", "q3",
                 "q4", "q5", ATTUNE_PREDICATES, "cc", "memory");
}

/// The same for sixteen scalars, with their own maximum (0 if it is −∞). Returns their sum in the order of
/// ops/reduce.hpp.
ATTUNE_OVERWRITES_PREDICATES float sixteen_exponentials(float* x) {
  register const ExpTable* r1 asm("r1") = &kExpTable;
  register float s0 asm("s0");
  asm volatile(
      "vldrw.u32 q0,[%[x]]\n vldrw.u32 q1,[%[x],#16]\n vldrw.u32 q2,[%[x],#32]\n vldrw.u32 q3,[%[x],#48]\n"
      "vmaxnm.f32 q0,q0,q1\n vmaxnm.f32 q2,q2,q3\n vmaxnm.f32 q0,q0,q2\n mov lr,#0\n movt lr,#0xff80\n"
      "vmaxnmv.f32 lr,q0\n cmn lr,#0x800000\n it eq\n moveq lr,#0\n" ATTUNE_LOAD_EXP_TABLE
      "vldrw.u32 q7,[%[x]]\n" ATTUNE_EXP("q7", "lr") "vstrw.u32 q7,[%[x]]\n"
      "vldrw.u32 q0,[%[x],#32]\n" ATTUNE_EXP("q0", "lr") "vstrw.u32 q0,[%[x],#32]\n vadd.f32 q7,q7,q0\n"
      "vldrw.u32 q6,[%[x],#16]\n" ATTUNE_EXP("q6", "lr") "vstrw.u32 q6,[%[x],#16]\n"
      "vldrw.u32 q0,[%[x],#48]\n" ATTUNE_EXP("q0", "lr") "vstrw.u32 q0,[%[x],#48]\n vadd.f32 q6,q6,q0\n"
      "vadd.f32 q0,q7,q6\n vadd.f32 s0,s0,s2\n vadd.f32 s1,s1,s3\n vadd.f32 s0,s0,s1"
      : "=t"(s0), "+r"(r1)
      : [x] "r"(x)
      : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "s1", "s2", "s3", "q1", "q2", "q3", "q4", "q5",
        "q6", "q7", ATTUNE_PREDICATES, "cc", "memory");
  return s0;
}

#undef ATTUNE_LOAD_EXP_TABLE
#undef ATTUNE_EXP
#undef ATTUNE_OVERWRITES_PREDICATES
#undef ATTUNE_PREDICATES

/// x[16] ← alpha · x.
ATTUNE_INLINE void scale_sixteen(float* x, float alpha) {
  asm volatile(
      "vldrw.u32 q0,[%[x]]\n vldrw.u32 q1,[%[x],#16]\n vldrw.u32 q2,[%[x],#32]\n vldrw.u32 q3,[%[x],#48]\n"
      "vmul.f32 q0,q0,%[alpha]\n vmul.f32 q1,q1,%[alpha]\n vmul.f32 q2,q2,%[alpha]\n vmul.f32 "
      "q3,q3,%[alpha]\n"
      "vstrw.u32 q0,[%[x]]\n vstrw.u32 q1,[%[x],#16]\n vstrw.u32 q2,[%[x],#32]\n vstrw.u32 q3,[%[x],#48]"
      :
      : [x] "r"(x), [alpha] "r"(alpha)
      : "q0", "q1", "q2", "q3", "memory");
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels

#endif
