// Exact GELU and SiLU on the single-precision FPU of a Cortex-M, in assembly: four elements at a time.
// Compilers copy every coefficient that a sum starts from, and branch for each bound. The bits are those of
// ops/activation.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <attune/kernels/cortex_m/exponential.hpp>
#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/simd/sigmoids.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// Groups of four registers. P holds products with instructions of their own.
#define ATTUNE_A "s0", "s1", "s2", "s3"
#define ATTUNE_B "s4", "s5", "s6", "s7"
#define ATTUNE_C "s8", "s9", "s10", "s11"
#define ATTUNE_D "s12", "s13", "s14", "s15"
#define ATTUNE_Y "s16", "s17", "s18", "s19"
#define ATTUNE_SIZE "s20", "s21", "s22", "s23"
#define ATTUNE_P "s24", "s25", "s26", "s27"
#define ATTUNE_ALL_OF(number) number, number, number, number

#define ATTUNE_FOUR_OF(instruction, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3)                       \
  instruction " " c0 "," a0 "," b0 "\n " instruction " " c1 "," a1 "," b1 "\n " instruction " " c2 "," a2 \
              "," b2 "\n " instruction " " c3 "," a3 "," b3 "\n"
#define ATTUNE_FOUR(...) ATTUNE_FOUR_OF(__VA_ARGS__)
#define ATTUNE_FOUR_MACS_OF(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, b2, b3, p0, p1, p2, p3) \
  ATTUNE_MACS(c0, a0, b0, c1, a1, b1, c2, a2, b2, c3, a3, b3, p0, p1, p2, p3)
#define ATTUNE_FOUR_MACS_AS_OF(...) ATTUNE_FOUR_MACS_OF(__VA_ARGS__)
#define ATTUNE_FOUR_MACS(...) ATTUNE_FOUR_MACS_AS_OF(__VA_ARGS__, ATTUNE_P)
// LESS: c −= a·b. FROM: c = a·b − c.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_FOUR_LESS(c, a, b) \
  ATTUNE_FOUR("vmul.f32", ATTUNE_P, a, b) ATTUNE_FOUR("vsub.f32", c, c, ATTUNE_P)
#define ATTUNE_FOUR_FROM(c, a, b) \
  ATTUNE_FOUR("vmul.f32", ATTUNE_P, a, b) ATTUNE_FOUR("vsub.f32", c, ATTUNE_P, c)
#elif ATTUNE_FUSED
#define ATTUNE_FOUR_LESS(c, a, b) ATTUNE_FOUR("vfms.f32", c, a, b)
#define ATTUNE_FOUR_FROM(c, a, b) ATTUNE_FOUR("vfnms.f32", c, a, b)
#else
#define ATTUNE_FOUR_LESS(c, a, b) ATTUNE_FOUR("vmls.f32", c, a, b)
#define ATTUNE_FOUR_FROM(c, a, b) ATTUNE_FOUR("vnmls.f32", c, a, b)
#endif

// d = c + a·b, with one register c for all. `d` may be P or, with instructions of its own for products, `a`.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_FOUR_SUM(d, c, a, b) \
  ATTUNE_FOUR("vmul.f32", ATTUNE_P, a, b) ATTUNE_FOUR("vadd.f32", d, ATTUNE_P, ATTUNE_ALL_OF(c))
#else
#define ATTUNE_FOUR_SUM_OF(d0, d1, d2, d3, c, a0, a1, a2, a3, b0, b1, b2, b3)                  \
  "vmov.f32 " d0 "," c "\n vmov.f32 " d1 "," c "\n vmov.f32 " d2 "," c "\n vmov.f32 " d3 "," c \
  "\n" ATTUNE_MACS(d0, a0, b0, d1, a1, b1, d2, a2, b2, d3, a3, b3)
#define ATTUNE_FOUR_SUM_AS_OF(...) ATTUNE_FOUR_SUM_OF(__VA_ARGS__)
#define ATTUNE_FOUR_SUM(d, c, a, b) ATTUNE_FOUR_SUM_AS_OF(d, c, a, b)
#endif

// clang-format off
// |x| in SIZE, from Y = x. The row of each element becomes an address in r0 … r3, the distance from the row's
// center is in C. `unless_far` branches to 2 if the numbers of the rows are too large.
#define ATTUNE_FOUR_ROWS(unless_far, values) \
  "vabs.f32 s20,s16\n vabs.f32 s21,s17\n vabs.f32 s22,s18\n vabs.f32 s23,s19\n" \
  ATTUNE_FOUR("vadd.f32", ATTUNE_C, ATTUNE_SIZE, ATTUNE_ALL_OF("%[rounding]")) \
  values \
  "vmov %[r0],%[r1],s8,s9\n vmov %[r2],%[r3],s10,s11\n" \
  "sub %[r0],%[r0],%[bits]\n sub %[r1],%[r1],%[bits]\n sub %[r2],%[r2],%[bits]\n sub %[r3],%[r3],%[bits]\n" \
  unless_far \
  "usat %[r0],#4,%[r0]\n usat %[r1],#4,%[r1]\n usat %[r2],#4,%[r2]\n usat %[r3],#4,%[r3]\n" \
  "add %[r0],%[rows],%[r0],lsl #5\n add %[r1],%[rows],%[r1],lsl #5\n" \
  "add %[r2],%[rows],%[r2],lsl #5\n add %[r3],%[rows],%[r3],lsl #5\n" \
  ATTUNE_FOUR("vsub.f32", ATTUNE_C, ATTUNE_C, ATTUNE_ALL_OF("%[rounding]")) \
  ATTUNE_FOUR("vsub.f32", ATTUNE_C, ATTUNE_SIZE, ATTUNE_C)
// Loads the coefficient at byte `at` of each element's row.
#define ATTUNE_OF_ROWS_OF(c0, c1, c2, c3, at) \
  "vldr " c0 ",[%[r0],#" at "]\n vldr " c1 ",[%[r1],#" at "]\n vldr " c2 ",[%[r2],#" at "]\n vldr " c3 ",[%[r3],#" at "]\n "
#define ATTUNE_OF_ROWS(...) ATTUNE_OF_ROWS_OF(__VA_ARGS__)
// Φ(−|x|) in A.
#define ATTUNE_FOUR_TAILS \
  ATTUNE_OF_ROWS(ATTUNE_A, "24") ATTUNE_OF_ROWS(ATTUNE_B, "20") \
  ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_A, ATTUNE_C) \
  ATTUNE_OF_ROWS(ATTUNE_A, "16") ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_B, ATTUNE_C) \
  ATTUNE_OF_ROWS(ATTUNE_B, "12") ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_A, ATTUNE_C) \
  ATTUNE_OF_ROWS(ATTUNE_A, "8") ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_B, ATTUNE_C) \
  ATTUNE_OF_ROWS(ATTUNE_B, "4") ATTUNE_FOUR_MACS(ATTUNE_B, ATTUNE_A, ATTUNE_C) \
  ATTUNE_OF_ROWS(ATTUNE_A, "0") ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_B, ATTUNE_C)
// max(x, 0) in Y, in two steps, and Y − |x|·Φ(−|x|).
#define ATTUNE_FOUR_TWICE_POSITIVE ATTUNE_FOUR("vadd.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_SIZE)
#define ATTUNE_FOUR_GELUS \
  ATTUNE_FOUR("vmul.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_ALL_OF("%[half]")) ATTUNE_FOUR_LESS(ATTUNE_Y, ATTUNE_SIZE, ATTUNE_A)
// clang-format on
#define ATTUNE_GELU_REGISTERS ATTUNE_A, ATTUNE_B, ATTUNE_C, ATTUNE_Y, ATTUNE_SIZE, ATTUNE_P

// Four elements one by one, if an |x| is 2²² or more, or an x is NaN.
[[gnu::noinline, gnu::cold]] inline void gelu_of_far(const float* x, float* y) {
  for (int i = 0; i < 4; ++i) y[i] = gelu(x[i], normal_tail(x[i]));
}

/// y[4 · fours] = gelu(x), fours ≥ 1. `y` may be `x`.
///
/// Each element has its own row of coefficients, which the integer unit finds.
[[gnu::noinline]] inline void gelu_of_fours(int fours, const float* x, float* y) {
#if ATTUNE_FOR_SIZE
  for (; fours > 0; x += 4, y += 4, --fours) gelu_of_far(x, y);
  return;
#endif
  static_assert(kTailTerms == 7 && kTailRows == 16 && sizeof(TailRows) == 16 * 32);
  constexpr std::uint32_t kRound = std::bit_cast<std::uint32_t>(kTailRound);
  const float half = in_register(0.5f), rounding = in_register(kTailRound);
  for (;; x += 4, y += 4, --fours) {
    std::uint32_t r0, r1, r2, r3, any;
    if (fours > 0) {
      asm volatile(
          // clang-format off
          "1: vldmia %[x],{s16-s19}\n"
          ATTUNE_FOUR_ROWS("orr %[any],%[r0],%[r1]\n orr %[any],%[any],%[r2]\n orr %[any],%[any],%[r3]\n"
                           "lsrs %[any],%[any],#23\n bne 2f\n", ATTUNE_FOUR_TWICE_POSITIVE)
          ATTUNE_FOUR_TAILS
          "add %[x],%[x],#16\n subs %[fours],%[fours],#1\n"
          ATTUNE_FOUR_GELUS
          "vstmia %[y]!,{s16-s19}\n bne 1b\n2:\n"
          // clang-format on
          : [x] "+&r"(x), [y] "+&r"(y), [fours] "+&r"(fours), [r0] "=&r"(r0), [r1] "=&r"(r1), [r2] "=&r"(r2),
            [r3] "=&r"(r3), [any] "=&r"(any)
          : [rows] "r"(kTail.rows[0]), [bits] "i"(kRound), [half] "t"(half), [rounding] "t"(rounding)
          : "cc", "memory", ATTUNE_GELU_REGISTERS);
    }
    if (fours <= 0) return;
    gelu_of_far(x, y);
  }
}

// Four slopes one by one, if an |x| is 12.75 or more, or an x is NaN. There 2|x| rounds to 26 or more, and
// e^(−x²/2) soon leaves the range of floats.
template <bool kValues, class Other>
[[gnu::noinline, gnu::cold]] void gelu_slopes_of_far(const float* x, Other* y, float* slopes) {
  for (int i = 0; i < 4; ++i) {
    const float from = x[i], tail = normal_tail(from), slope = gelu_slope(from, tail, normal_density(from));
    if constexpr (kValues) {
      y[i] = gelu(from, tail), slopes[i] = slope;
    } else {
      slopes[i] = y[i] * slope;
    }
  }
}

// The constants of e^(−x²/2)/√(2π), in the order of their loads.
struct DensityTable {
  float log2e, rounding, high, low, one, factor;
  float polynomial[6];
};
inline constexpr DensityTable kDensityTable = [] {
  using C = ExpCoefficients<float>;
  static_assert(std::size(C::kPolynomial) == 6);
  DensityTable table{C::kLog2E, C::kRound, C::kLn2High, C::kLn2Low, 1, kDensityAtZero<float>, {}};
  for (int i = 0; i < 6; ++i) table.polynomial[i] = C::kPolynomial[i];
  return table;
}();

/// With kValues y[4 · fours] = gelu(x) and slopes = gelu′(x), otherwise slopes = y ∘ gelu′(x); fours ≥ 1.
/// `slopes` may be `x` or, without kValues, `y`.
template <bool kValues, class Other>
[[gnu::noinline]] void gelu_slopes_of_fours(int fours, const float* x, Other* y, float* slopes) {
#if ATTUNE_FOR_SIZE
  for (; fours > 0; x += 4, y += 4, slopes += 4, --fours) gelu_slopes_of_far<kValues>(x, y, slopes);
  return;
#endif
  constexpr std::uint32_t kRound = std::bit_cast<std::uint32_t>(kTailRound);
  const float half = in_register(0.5f), rounding = in_register(kTailRound);
  for (;; x += 4, y += 4, slopes += 4, --fours) {
    std::uint32_t r0, r1, r2, r3, t, u;
    const float* table = &kDensityTable.log2e;
    if (fours > 0) {
      // clang-format off
#define ATTUNE_SLOPES_OF_FOURS(twice_positive, values, results) \
      asm volatile( \
          "vldmia %[table]!,{s12-s15}\n vldmia %[table]!,{s28-s29}\n" \
          "1: vldmia %[x],{s16-s19}\n" \
          ATTUNE_FOUR_ROWS("cmp %[r0],#26\n ittt lo\n cmplo %[r1],#26\n cmplo %[r2],#26\n cmplo %[r3],#26\n bhs 2f\n", \
                           twice_positive) \
          ATTUNE_FOUR_TAILS \
          values \
          ATTUNE_FOUR("vmul.f32", ATTUNE_Y, ATTUNE_SIZE, ATTUNE_SIZE) \
          ATTUNE_FOUR("vnmul.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_ALL_OF("%[half]")) \
          ATTUNE_FOUR_SUM(ATTUNE_B, "s13", ATTUNE_Y, ATTUNE_ALL_OF("s12"))  /* z = n + kRound */ \
          "vmov %[r0],%[r1],s4,s5\n vmov %[r2],%[r3],s6,s7\n vldmia %[table],{s8-s11}\n" \
          ATTUNE_FOUR("vsub.f32", ATTUNE_B, ATTUNE_B, ATTUNE_ALL_OF("s13")) \
          ATTUNE_FOUR_LESS(ATTUNE_Y, ATTUNE_B, ATTUNE_ALL_OF("s14")) \
          ATTUNE_FOUR_LESS(ATTUNE_Y, ATTUNE_B, ATTUNE_ALL_OF("s15")) \
          ATTUNE_FOUR_SUM(ATTUNE_B, "s9", ATTUNE_Y, ATTUNE_ALL_OF("s8")) \
          "vldr s8,[%[table],#16]\n vldr s9,[%[table],#20]\n" \
          ATTUNE_FOUR_SUM(ATTUNE_P, "s10", ATTUNE_B, ATTUNE_Y) \
          ATTUNE_FOUR_SUM(ATTUNE_B, "s11", ATTUNE_P, ATTUNE_Y) \
          ATTUNE_FOUR_SUM(ATTUNE_P, "s8", ATTUNE_B, ATTUNE_Y) \
          ATTUNE_FOUR_SUM(ATTUNE_B, "s9", ATTUNE_P, ATTUNE_Y) \
          ATTUNE_FOUR("vmul.f32", ATTUNE_B, ATTUNE_B, ATTUNE_Y) \
          ATTUNE_FOUR_MACS(ATTUNE_Y, ATTUNE_B, ATTUNE_Y) \
          ATTUNE_FOUR("vadd.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_ALL_OF("s28")) \
          "vmov %[t],%[u],s16,s17\n add %[t],%[t],%[r0],lsl #23\n add %[u],%[u],%[r1],lsl #23\n vmov s16,s17,%[t],%[u]\n" \
          "vmov %[t],%[u],s18,s19\n add %[t],%[t],%[r2],lsl #23\n add %[u],%[u],%[r3],lsl #23\n vmov s18,s19,%[t],%[u]\n" \
          ATTUNE_FOUR("vmul.f32", ATTUNE_Y, ATTUNE_Y, ATTUNE_ALL_OF("s29")) \
          "ldrd %[r0],%[r1],[%[x]]\n ldrd %[r2],%[r3],[%[x],#8]\n add %[x],%[x],#16\n" \
          ATTUNE_FOUR_LESS(ATTUNE_A, ATTUNE_SIZE, ATTUNE_Y)  /* of −|x| */ \
          "cmp %[r0],#0x80000000\n it ls\n vsubls.f32 s0,s28,s0\n cmp %[r1],#0x80000000\n it ls\n vsubls.f32 s1,s28,s1\n" \
          "cmp %[r2],#0x80000000\n it ls\n vsubls.f32 s2,s28,s2\n cmp %[r3],#0x80000000\n it ls\n vsubls.f32 s3,s28,s3\n" \
          results \
          "subs %[fours],%[fours],#1\n vstmia %[slopes]!,{s0-s3}\n bne 1b\n2:\n" \
          : [x] "+&r"(x), [y] "+&r"(y), [slopes] "+&r"(slopes), [fours] "+&r"(fours), [table] "+&r"(table), \
            [r0] "=&r"(r0), [r1] "=&r"(r1), [r2] "=&r"(r2), [r3] "=&r"(r3), [t] "=&r"(t), [u] "=&r"(u) \
          : [rows] "r"(kTail.rows[0]), [bits] "i"(kRound), [half] "t"(half), [rounding] "t"(rounding) \
          : "cc", "memory", ATTUNE_D, "s28", "s29", ATTUNE_GELU_REGISTERS)
      if constexpr (kValues) {
        ATTUNE_SLOPES_OF_FOURS(ATTUNE_FOUR_TWICE_POSITIVE, ATTUNE_FOUR_GELUS "vstmia %[y]!,{s16-s19}\n", "");
      } else {
        ATTUNE_SLOPES_OF_FOURS("", "", "vldmia %[y]!,{s16-s19}\n" ATTUNE_FOUR("vmul.f32", ATTUNE_A, ATTUNE_A, ATTUNE_Y));
      }
#undef ATTUNE_SLOPES_OF_FOURS
      // clang-format on
    }
    if (fours <= 0) return;
    gelu_slopes_of_far<kValues>(x, y, slopes);
  }
}

#undef ATTUNE_FOUR_SUM
#undef ATTUNE_FOUR_SUM_OF
#undef ATTUNE_FOUR_SUM_AS_OF
#undef ATTUNE_FOUR_ROWS
#undef ATTUNE_OF_ROWS_OF
#undef ATTUNE_OF_ROWS
#undef ATTUNE_FOUR_TAILS
#undef ATTUNE_FOUR_TWICE_POSITIVE
#undef ATTUNE_FOUR_GELUS
#undef ATTUNE_GELU_REGISTERS

// The constants of SiLU's sums, each four times. The first one rounds.
template <std::size_t kSums>
struct AddendsOfFour {
  float values[kSums][4];
};
inline constexpr AddendsOfFour<6> kSiluTable = [] {
  using C = ExpCoefficients<float>;
  static_assert(std::size(C::kPolynomial) == 6);
  AddendsOfFour<6> table{};
  for (int i = 0; i < 24; ++i) table.values[i / 4][i % 4] = i < 4 ? C::kRound : C::kPolynomial[i / 4];
  return table;
}();

/// The other operand of silu_of_fours().
enum class Beside { kNothing, kUp, kSlopes, kGradient };

// Four elements one by one, if an e^(−x) leaves the range of floats, or an x is NaN.
template <Beside kBeside>
[[gnu::noinline, gnu::cold]] void silu_of_far(const float* x, const float* up, float* y, float* slopes) {
  for (int i = 0; i < 4; ++i) {
    float complement;
    const float gate = sigmoid(x[i], complement), value = x[i] * gate;
    const float slope = multiply_add(value, complement, gate);
    if constexpr (kBeside == Beside::kSlopes) slopes[i] = slope;
    if constexpr (kBeside == Beside::kGradient) {
      y[i] = up[i] * slope;
    } else {
      y[i] = kBeside == Beside::kUp ? value * up[i] : value;
    }
  }
}

/// y[4 · fours] = silu(x); with kUp y = silu(x) ∘ up, with kSlopes also slopes = silu′(x). With kGradient y =
/// up ∘ silu′(x). `y` may be `x` or `up`, and `slopes` may be `x`.
///
/// For −x = n·ln2 + r, the sums are those of exponential() at −r = x + n·ln2.
template <Beside kBeside>
[[gnu::noinline]] void silu_of_fours(int fours, const float* x, float* y, const float* up, float* slopes) {
  using C = ExpCoefficients<float>;
  constexpr std::uint32_t kFar = std::bit_cast<std::uint32_t>(-C::kLowest) << 1;
  const float log2e = in_register(-C::kLog2E), rounding = in_register(C::kRound),
              high = in_register(C::kLn2High), low = in_register(C::kLn2Low), one = in_register(1.0f),
              highest = in_register(C::kPolynomial[0]);
  register float s0 asm("s0"), s1 asm("s1"), s2 asm("s2"), s3 asm("s3"), s8 asm("s8"), s9 asm("s9"),
      s10 asm("s10"), s11 asm("s11"), s12 asm("s12"), s13 asm("s13"), s14 asm("s14"), s15 asm("s15");
  for (const float* const end = x + 4 * fours; x != end;) {
    std::uint32_t z0, z1, z2, z3, p0, p1, p2, p3;
    // A branch, because clang has no output for a flag on 32-bit Arm.
    asm goto(
        "ldrd r0,r2,[%[x]]\n ldrd r3,r12,[%[x],#8]\n cmp %[far],r0,lsl #1\n ittt hs\n cmphs %[far],r2,lsl "
        "#1\n "
        "cmphs %[far],r3,lsl #1\n cmphs %[far],r12,lsl #1\n blo %l[far_element]"
        :
        : [x] "r"(x), [far] "r"(kFar), "m"(*reinterpret_cast<const float(*)[4]>(x))
        : "cc", "r0", "r2", "r3", "r12"
        : far_element);
    asm volatile(
        // clang-format off
        "vldmia %[x],{s16-s19}\n vldmia %[first],{s0-s15}\n"
        ATTUNE_FOUR_MACS(ATTUNE_A, ATTUNE_ALL_OF("%[log2e]"), ATTUNE_Y)  // z = n + kRound
        "vmov %[z0],%[z1],s0,s1\n vmov %[z2],%[z3],s2,s3\n"
        ATTUNE_FOUR("vsub.f32", ATTUNE_A, ATTUNE_A, ATTUNE_ALL_OF("%[rounding]"))
        ATTUNE_FOUR_MACS(ATTUNE_Y, ATTUNE_A, ATTUNE_ALL_OF("%[high]"))
        ATTUNE_FOUR_MACS(ATTUNE_Y, ATTUNE_A, ATTUNE_ALL_OF("%[low]"))
        ATTUNE_FOUR_LESS(ATTUNE_B, ATTUNE_ALL_OF("%[highest]"), ATTUNE_Y)
        ATTUNE_FOUR_LESS(ATTUNE_C, ATTUNE_B, ATTUNE_Y)
        ATTUNE_FOUR_LESS(ATTUNE_D, ATTUNE_C, ATTUNE_Y)
        "vldmia %[then],{s0-s7}\n"
        ATTUNE_FOUR_LESS(ATTUNE_A, ATTUNE_D, ATTUNE_Y)
        ATTUNE_FOUR_LESS(ATTUNE_B, ATTUNE_A, ATTUNE_Y)
        ATTUNE_FOUR("vmul.f32", ATTUNE_C, ATTUNE_B, ATTUNE_Y)
        ATTUNE_FOUR_FROM(ATTUNE_Y, ATTUNE_C, ATTUNE_Y)
        ATTUNE_FOUR("vadd.f32", ATTUNE_A, ATTUNE_Y, ATTUNE_ALL_OF("%[one]"))  // e^r
        "vmov %[p0],%[p1],s0,s1\n vmov %[p2],%[p3],s2,s3\n vldmia %[x]!,{s16-s19}\n"
        "add %[p0],%[p0],%[z0],lsl #23\n add %[p1],%[p1],%[z1],lsl #23\n"
        "add %[p2],%[p2],%[z2],lsl #23\n add %[p3],%[p3],%[z3],lsl #23\n"
        "vmov s0,s1,%[p0],%[p1]\n vmov s2,s3,%[p2],%[p3]\n"  // e^(−x)
        ATTUNE_FOUR("vadd.f32", ATTUNE_C, ATTUNE_A, ATTUNE_ALL_OF("%[one]"))
        ATTUNE_FOUR("vdiv.f32", ATTUNE_C, ATTUNE_ALL_OF("%[one]"), ATTUNE_C)
        ATTUNE_FOUR("vmul.f32", ATTUNE_D, ATTUNE_C, ATTUNE_Y)
        // clang-format on
        : "=&t"(s0), "=&t"(s1), "=&t"(s2), "=&t"(s3), "=&t"(s8), "=&t"(s9), "=&t"(s10), "=&t"(s11),
          "=&t"(s12), "=&t"(s13), "=&t"(s14), "=&t"(s15), [z0] "=&r"(z0), [z1] "=&r"(z1), [z2] "=&r"(z2),
          [z3] "=&r"(z3), [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [x] "+&r"(x)
        : [first] "r"(kSiluTable.values[0]), [then] "r"(kSiluTable.values[4]), [log2e] "t"(log2e),
          [rounding] "t"(rounding), [high] "t"(high), [low] "t"(low), [highest] "t"(highest), [one] "t"(one)
        : "memory", ATTUNE_B, ATTUNE_Y, ATTUNE_P);
    if constexpr (kBeside == Beside::kUp) {
      asm volatile("vldmia %[up]!,{s4-s7}\n" ATTUNE_FOUR("vmul.f32", ATTUNE_D, ATTUNE_D, ATTUNE_B)
                   : "+t"(s12), "+t"(s13), "+t"(s14), "+t"(s15), [up] "+&r"(up)
                   :
                   : "memory", ATTUNE_B);
    } else if constexpr (kBeside == Beside::kSlopes) {
      asm volatile(ATTUNE_FOUR("vmul.f32", ATTUNE_A, ATTUNE_A, ATTUNE_C)  // 1 − gate
                   ATTUNE_FOUR_MACS(ATTUNE_C, ATTUNE_D, ATTUNE_A) "vstmia %[slopes]!,{s8-s11}"
                   : "+t"(s0), "+t"(s1), "+t"(s2), "+t"(s3), "+t"(s8), "+t"(s9), "+t"(s10),
                     "+t"(s11), [slopes] "+&r"(slopes)
                   : "t"(s12), "t"(s13), "t"(s14), "t"(s15)
                   : "memory", ATTUNE_P);
    } else if constexpr (kBeside == Beside::kGradient) {
      asm volatile(ATTUNE_FOUR("vmul.f32", ATTUNE_A, ATTUNE_A, ATTUNE_C)  // 1 − gate
                   ATTUNE_FOUR_MACS(ATTUNE_C, ATTUNE_D, ATTUNE_A) "vldmia %[up]!,{s4-s7}\n" ATTUNE_FOUR(
                       "vmul.f32", ATTUNE_D, ATTUNE_C, ATTUNE_B)
                   : "+t"(s0), "+t"(s1), "+t"(s2), "+t"(s3), "+t"(s8), "+t"(s9), "+t"(s10), "+t"(s11),
                     "+t"(s12), "+t"(s13), "+t"(s14), "+t"(s15), [up] "+&r"(up)
                   :
                   : "memory", ATTUNE_B, ATTUNE_P);
    }
    asm volatile("vstmia %[y]!,{s12-s15}" : [y] "+r"(y) : "t"(s12), "t"(s13), "t"(s14), "t"(s15) : "memory");
    continue;
  far_element:
    silu_of_far<kBeside>(x, up, y, slopes);
    x += 4, y += 4;
    if constexpr (kBeside == Beside::kUp || kBeside == Beside::kGradient) up += 4;
    if constexpr (kBeside == Beside::kSlopes) slopes += 4;
  }
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
#undef ATTUNE_FOUR_FROM

// A function on groups of four elements: values alone, values with the derivative in place of x, or dx = dy ∘
// f′(x).
struct GeluInFours {
  ATTUNE_INLINE static void activate(int fours, const float* x, float* y) { gelu_of_fours(fours, x, y); }
  ATTUNE_INLINE static void activate_with_slopes(int fours, float* x, float* y) {
    gelu_slopes_of_fours<true>(fours, x, y, x);
  }
  ATTUNE_INLINE static void activate_backward(int fours, const float* x, const float* dy, float* dx) {
    gelu_slopes_of_fours<false>(fours, x, dy, dx);
  }
};
struct SiluInFours {
  ATTUNE_INLINE static void activate(int fours, const float* x, float* y) {
    silu_of_fours<Beside::kNothing>(fours, x, y, nullptr, nullptr);
  }
  ATTUNE_INLINE static void activate_with_slopes(int fours, float* x, float* y) {
    silu_of_fours<Beside::kSlopes>(fours, x, y, nullptr, x);
  }
  ATTUNE_INLINE static void activate_backward(int fours, const float* x, const float* dy, float* dx) {
    silu_of_fours<Beside::kGradient>(fours, x, dx, dy, nullptr);
  }
};

/// y[size] = f(x). `y` may be `x`. Elements after the last whole four are padded to one.
template <class InFours>
ATTUNE_INLINE void activate_in_fours(int size, const float* x, float* y) {
  const int whole = size & ~3;
  if (whole > 0) InFours::activate(whole / 4, x, y);
  if (whole == size) return;
  float rest[4] = {};
  for (int i = whole; i < size; ++i) rest[i - whole] = x[i];
  InFours::activate(1, rest, rest);
  for (int i = whole; i < size; ++i) y[i] = rest[i - whole];
}

/// y[size] = f(x), and x becomes f′(x).
template <class InFours>
ATTUNE_INLINE void activate_in_fours_with_slopes(int size, float* x, float* y) {
  const int whole = size & ~3;
  if (whole > 0) InFours::activate_with_slopes(whole / 4, x, y);
  if (whole == size) return;
  float rest[4] = {}, values[4];
  for (int i = whole; i < size; ++i) rest[i - whole] = x[i];
  InFours::activate_with_slopes(1, rest, values);
  for (int i = whole; i < size; ++i) x[i] = rest[i - whole], y[i] = values[i - whole];
}

/// dx[size] = dy ∘ f′(x). `dx` may be `x` or `dy`.
template <class InFours>
ATTUNE_INLINE void activate_in_fours_backward(int size, const float* x, const float* dy, float* dx) {
  const int whole = size & ~3;
  if (whole > 0) InFours::activate_backward(whole / 4, x, dy, dx);
  if (whole == size) return;
  float rest[4] = {}, gradients[4] = {};
  for (int i = whole; i < size; ++i) rest[i - whole] = x[i], gradients[i - whole] = dy[i];
  InFours::activate_backward(1, rest, gradients, rest);
  for (int i = whole; i < size; ++i) dx[i] = rest[i - whole];
}

/// From da[size]: gate becomes da ∘ up ∘ f′(gate), up becomes da ∘ f(gate).
template <class InFours>
ATTUNE_INLINE void gate_in_fours_backward(int size, const float* da, float* gate, float* up) {
  constexpr int kAtOnce = 16;
  for (int count; size > 0; size -= count, da += count, gate += count, up += count) {
    count = size < kAtOnce ? size : kAtOnce;
    float values[kAtOnce];
    activate_in_fours_with_slopes<InFours>(count, gate, values);
    for (int i = 0; i < count; ++i) {
      const float gradient = da[i];
      gate[i] = gradient * up[i] * gate[i];
      up[i] = gradient * values[i];
    }
  }
}

/// y[size] = silu(x) ∘ up. `y` may be `x` or `up`.
ATTUNE_INLINE void gated_silu(int size, const float* x, const float* up, float* y) {
  const int whole = size & ~3;
  silu_of_fours<Beside::kUp>(whole / 4, x, y, up, nullptr);
  for (int i = whole; i < size; ++i) {
    float value;
    activate_in_fours<SiluInFours>(1, x + i, &value);
    y[i] = value * up[i];
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
