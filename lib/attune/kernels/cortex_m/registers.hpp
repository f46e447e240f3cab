// Operations on many FPU registers of a Cortex-M at once. An instruction loads or stores up to sixteen
// scalars; compilers use one for each.
#pragma once

#include <cstdint>

#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

inline constexpr int kManyRegisters = 16;

// The start of sums. Loading zeros takes fewer instructions than moving them, and as many cycles.
inline constexpr float kNoSums[kManyRegisters] = {};

// s16 … s31.
struct ManyRegisters {
  float lane[kManyRegisters];
};

#define ATTUNE_DECLARE_REGISTERS                                                                      \
  register float s16 asm("s16"), s17 asm("s17"), s18 asm("s18"), s19 asm("s19"), s20 asm("s20"),      \
      s21 asm("s21"), s22 asm("s22"), s23 asm("s23"), s24 asm("s24"), s25 asm("s25"), s26 asm("s26"), \
      s27 asm("s27"), s28 asm("s28"), s29 asm("s29"), s30 asm("s30"), s31 asm("s31")
#define ATTUNE_REGISTERS(constraint)                                                                        \
  constraint(s16), constraint(s17), constraint(s18), constraint(s19), constraint(s20), constraint(s21),     \
      constraint(s22), constraint(s23), constraint(s24), constraint(s25), constraint(s26), constraint(s27), \
      constraint(s28), constraint(s29), constraint(s30), constraint(s31)

ATTUNE_INLINE ManyRegisters load_many(const float* from) {
  ATTUNE_DECLARE_REGISTERS;
  asm("vldmia %[from],{s16-s31}"
      : ATTUNE_REGISTERS("=t")
      : [from] "r"(from), "m"(*reinterpret_cast<const float(*)[kManyRegisters]>(from)));
  return {s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31};
}

// The largest of x[size], size ≥ 16. Without a whole number of sixteens, the last sixteen overlap the ones
// before. A branch over a move takes one instruction less than a conditional move. Uses only registers that a
// function need not save.
[[gnu::noinline]] inline float largest_of_many(const float* x, int size = kManyRegisters) {
#define ATTUNE_RAISE(lane) \
  "vcmp.f32 " lane ",s0\n vmrs APSR_nzcv,fpscr\n ble 1f\n vmov.f32 s0," lane "\n1:\n "
  register float s0 asm("s0") = *x;
  for (const float *from = x, *const last = x + size - kManyRegisters;; from += kManyRegisters) {
    if (from > last) from = last;
    asm("vldmia %[from],{s1-s15}\n " ATTUNE_RAISE("s1") ATTUNE_RAISE("s2") ATTUNE_RAISE("s3")
            ATTUNE_RAISE("s4") ATTUNE_RAISE("s5") ATTUNE_RAISE("s6") ATTUNE_RAISE("s7") ATTUNE_RAISE("s8")
                ATTUNE_RAISE("s9") ATTUNE_RAISE("s10") ATTUNE_RAISE("s11") ATTUNE_RAISE("s12")
                    ATTUNE_RAISE("s13") ATTUNE_RAISE("s14")
                        ATTUNE_RAISE("s15") "vldr s1,[%[from],#60]\n " ATTUNE_RAISE("s1")
        : "+t"(s0)
        : [from] "r"(from), "m"(*reinterpret_cast<const float(*)[kManyRegisters]>(from))
        : "cc", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
          "s15");
    if (from == last) return s0;
  }
#undef ATTUNE_RAISE
}

// Adds s0 … s15, the upper half to the lower one each time. The sum is in s0.
#define ATTUNE_FOLD                                                                      \
  "vadd.f32 s0,s0,s8\n vadd.f32 s1,s1,s9\n vadd.f32 s2,s2,s10\n vadd.f32 s3,s3,s11\n "   \
  "vadd.f32 s4,s4,s12\n vadd.f32 s5,s5,s13\n vadd.f32 s6,s6,s14\n vadd.f32 s7,s7,s15\n " \
  "vadd.f32 s0,s0,s4\n vadd.f32 s1,s1,s5\n vadd.f32 s2,s2,s6\n vadd.f32 s3,s3,s7\n "     \
  "vadd.f32 s0,s0,s2\n vadd.f32 s1,s1,s3\n vadd.f32 s0,s0,s1\n "
#if ATTUNE_FOR_SIZE
// A shared copy for -Os. Clobbers those registers alone.
[[gnu::naked]] inline void fold_registers() { asm(ATTUNE_FOLD "bx lr\n"); }
#define ATTUNE_FOLD_CALLED "bl %c[fold]\n "
#define ATTUNE_FOLD_CALL [fold] "i"(fold_registers)
#define ATTUNE_FOLD_RETURN "lr"
#else
#define ATTUNE_FOLD_CALLED ATTUNE_FOLD
#define ATTUNE_FOLD_CALL [fold] "i"(0)
#define ATTUNE_FOLD_RETURN "cc"
#endif

ATTUNE_INLINE float fold_of_many(const float* lanes) {
  register float s0 asm("s0");
  asm("vldmia %[lanes],{s0-s15}\n " ATTUNE_FOLD_CALLED
      : "=t"(s0)
      : [lanes] "r"(lanes), "m"(*reinterpret_cast<const float(*)[kManyRegisters]>(lanes)), ATTUNE_FOLD_CALL
      : ATTUNE_FOLD_RETURN, "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
        "s14", "s15");
  return s0;
}

// Σ lanes[16], in the order of ops/reduce.hpp.
[[gnu::noinline]] inline float sum_of_lanes(float* lanes) { return fold_of_many(lanes); }

// Σ x[16]·y[16], each product rounded, in the order of ops/reduce.hpp.
ATTUNE_INLINE float dot_of_many(const float* x, const float* y) {
#define ATTUNE_MULTIPLY(x, y) "vmul.f32 " x "," x "," y "\n "
  register float s0 asm("s0");
  asm("vldmia %[x],{s0-s15}\n vldmia %[y],{s16-s31}\n " ATTUNE_MULTIPLY("s0", "s16") ATTUNE_MULTIPLY(
          "s1", "s17") ATTUNE_MULTIPLY("s2", "s18") ATTUNE_MULTIPLY("s3", "s19") ATTUNE_MULTIPLY("s4", "s20")
          ATTUNE_MULTIPLY("s5", "s21") ATTUNE_MULTIPLY("s6", "s22") ATTUNE_MULTIPLY("s7", "s23")
              ATTUNE_MULTIPLY("s8", "s24") ATTUNE_MULTIPLY("s9", "s25") ATTUNE_MULTIPLY("s10", "s26")
                  ATTUNE_MULTIPLY("s11", "s27") ATTUNE_MULTIPLY("s12", "s28") ATTUNE_MULTIPLY("s13", "s29")
                      ATTUNE_MULTIPLY("s14", "s30") ATTUNE_MULTIPLY("s15", "s31") ATTUNE_FOLD
      : "=t"(s0)
      : [x] "r"(x), [y] "r"(y), "m"(*reinterpret_cast<const float(*)[kManyRegisters]>(x)),
        "m"(*reinterpret_cast<const float(*)[kManyRegisters]>(y))
      : "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16",
        "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30",
        "s31");
#undef ATTUNE_MULTIPLY
  return s0;
}

// The same of `size` terms, at least 16.
[[gnu::noinline]] inline float dot_of_many(int size, const float* x, const float* y) {
#define ATTUNE_EIGHT_TERMS(c0, c1, c2, c3, c4, c5, c6, c7)                                                 \
  "vldmia %[x]!,{s0-s7}\n vldmia %[y]!,{s8-s15}\n vmul.f32 s0,s0,s8\n vmul.f32 s1,s1,s9\n "                \
  "vmul.f32 s2,s2,s10\n vmul.f32 s3,s3,s11\n vmul.f32 s4,s4,s12\n vmul.f32 s5,s5,s13\n "                   \
  "vmul.f32 s6,s6,s14\n vmul.f32 s7,s7,s15\n vadd.f32 " c0 "," c0 ",s0\n vadd.f32 " c1 "," c1              \
  ",s1\n vadd.f32 " c2 "," c2 ",s2\n vadd.f32 " c3 "," c3 ",s3\n vadd.f32 " c4 "," c4 ",s4\n vadd.f32 " c5 \
  "," c5 ",s5\n vadd.f32 " c6 "," c6 ",s6\n vadd.f32 " c7 "," c7 ",s7\n "
  float lanes[kManyRegisters];
  asm volatile(  // lanes begin with −0, which changes no sum
      "vmov d8,%[zero],%[zero]\n vmov d9,%[zero],%[zero]\n vmov d10,%[zero],%[zero]\n "
      "vmov d11,%[zero],%[zero]\n vmov d12,%[zero],%[zero]\n vmov d13,%[zero],%[zero]\n "
      "vmov d14,%[zero],%[zero]\n vmov d15,%[zero],%[zero]\n"
      "1: " ATTUNE_EIGHT_TERMS("s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
          ATTUNE_EIGHT_TERMS("s24", "s25", "s26", "s27", "s28", "s29", "s30",
                             "s31") "cmp %[x],%[end]\n bne 1b\n vstmia %[lanes],{s16-s31}"
      : [x] "+&r"(x), [y] "+&r"(y)
      : [end] "r"(x + (size & -kManyRegisters)), [zero] "r"(-0.0f), [lanes] "r"(lanes)
      : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12",
        "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26",
        "s27", "s28", "s29", "s30", "s31");
#undef ATTUNE_EIGHT_TERMS
  for (int l = 0; l < size % kManyRegisters; ++l) lanes[l] = add(lanes[l], multiply(x[l], y[l]));
  return sum_of_lanes(lanes);
}

// to[size] = x ∘ (y − shift) · scale. `size` is a positive multiple of four. `to` may be x or y.
ATTUNE_INLINE void multiply_shifted(int size, const float* x, const float* y, float* to, float shift,
                                    float scale) {
  register float s0 asm("s0") = shift, s1 asm("s1") = scale;
  asm volatile(
      "1: vldmia %[x]!,{s2-s5}\n vldmia %[y]!,{s6-s9}\n cmp %[x],%[end]\n vsub.f32 s6,s6,s0\n "
      "vsub.f32 s7,s7,s0\n vsub.f32 s8,s8,s0\n vsub.f32 s9,s9,s0\n vmul.f32 s6,s2,s6\n vmul.f32 s7,s3,s7\n "
      "vmul.f32 s8,s4,s8\n vmul.f32 s9,s5,s9\n vmul.f32 s6,s6,s1\n vmul.f32 s7,s7,s1\n vmul.f32 s8,s8,s1\n "
      "vmul.f32 s9,s9,s1\n vstmia %[to]!,{s6-s9}\n bne 1b"
      : [x] "+&r"(x), [y] "+&r"(y), [to] "+&r"(to)
      : [end] "r"(x + size), "t"(s0), "t"(s1)
      : "cc", "memory", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9");
}

// Adds four squares, each rounded, by VMLA or by VMUL and VADD, whichever takes less time.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_SQUARES(c0, c1, c2, c3, x0, x1, x2, x3) \
  ATTUNE_MACS(c0, x0, x0, c1, x1, x1, c2, x2, x2, c3, x3, x3, x0, x1, x2, x3)
#else
#define ATTUNE_SQUARES(c0, c1, c2, c3, x0, x1, x2, x3)                                         \
  "vmla.f32 " c0 "," x0 "," x0 "\n vmla.f32 " c1 "," x1 "," x1 "\n vmla.f32 " c2 "," x2 "," x2 \
  "\n "                                                                                        \
  "vmla.f32 " c3 "," x3 "," x3 "\n "
#endif

// Σ x² over [first, end) in the order of ops/squares.hpp. The size is a positive multiple of 16.
ATTUNE_INLINE float squares_of_many(const float* first, const float* end) {
  register float s0 asm("s0");
  asm("vmov d0,%[zero],%[zero]\n vmov d1,%[zero],%[zero]\n vmov d2,%[zero],%[zero]\n "
      "vmov d3,%[zero],%[zero]\n vmov d4,%[zero],%[zero]\n vmov d5,%[zero],%[zero]\n "
      "vmov d6,%[zero],%[zero]\n vmov d7,%[zero],%[zero]\n "
      "1: vldmia %[first]!,{s16-s31}\n cmp %[first],%[end]\n " ATTUNE_SQUARES("s0", "s1", "s2", "s3", "s16",
                                                                              "s17", "s18", "s19")
          ATTUNE_SQUARES("s4", "s5", "s6", "s7", "s20", "s21", "s22", "s23")
              ATTUNE_SQUARES("s8", "s9", "s10", "s11", "s24", "s25", "s26", "s27") ATTUNE_SQUARES(
                  "s12", "s13", "s14", "s15", "s28", "s29", "s30", "s31") "bne 1b\n " ATTUNE_FOLD_CALLED
      : "=&t"(s0), [first] "+&r"(first)
      : [end] "r"(end), [zero] "r"(0), ATTUNE_FOLD_CALL
      : ATTUNE_FOLD_RETURN, "cc", "memory", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10",
        "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24",
        "s25", "s26", "s27", "s28", "s29", "s30", "s31");
  return s0;
}

#undef ATTUNE_SQUARES
#undef ATTUNE_FOLD
#undef ATTUNE_FOLD_CALLED
#undef ATTUNE_FOLD_CALL
#undef ATTUNE_FOLD_RETURN

// Σ 0·x over [first, end). The size is a positive multiple of 16.
ATTUNE_INLINE float zeros_of_many(const float* first, const float* end) {
#define ATTUNE_ZEROS(x0, x1, x2, x3) \
  "vmla.f32 s0," x0 ",s4\n vmla.f32 s1," x1 ",s4\n vmla.f32 s2," x2 ",s4\n vmla.f32 s3," x3 ",s4\n "
  register float s0 asm("s0");
  asm("vmov d0,%[zero],%[zero]\n vmov d1,%[zero],%[zero]\n vmov s4,%[zero]\n"
      "1: vldmia %[first]!,{s16-s31}\n cmp %[first],%[end]\n " ATTUNE_ZEROS("s16", "s17", "s18", "s19")
          ATTUNE_ZEROS("s20", "s21", "s22", "s23") ATTUNE_ZEROS("s24", "s25", "s26", "s27")
              ATTUNE_ZEROS("s28", "s29", "s30",
                           "s31") "bne 1b\n vadd.f32 s0,s0,s1\n vadd.f32 s2,s2,s3\n vadd.f32 s0,s0,s2\n"
      : "=&t"(s0), [first] "+&r"(first)
      : [end] "r"(end), [zero] "r"(0)
      : "cc", "memory", "s1", "s2", "s3", "s4", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24",
        "s25", "s26", "s27", "s28", "s29", "s30", "s31");
#undef ATTUNE_ZEROS
  return s0;
}

ATTUNE_INLINE void store_many(float* to, const ManyRegisters& from) {
  ATTUNE_DECLARE_REGISTERS;
  s16 = from.lane[0], s17 = from.lane[1], s18 = from.lane[2], s19 = from.lane[3];
  s20 = from.lane[4], s21 = from.lane[5], s22 = from.lane[6], s23 = from.lane[7];
  s24 = from.lane[8], s25 = from.lane[9], s26 = from.lane[10], s27 = from.lane[11];
  s28 = from.lane[12], s29 = from.lane[13], s30 = from.lane[14], s31 = from.lane[15];
  asm("vstmia %[to],{s16-s31}"
      : "=m"(*reinterpret_cast<float(*)[kManyRegisters]>(to))
      : [to] "r"(to), ATTUNE_REGISTERS("t"));
}

// sum[size] = x + y; `sum` may be x or y. `size` is a positive multiple of eight.
ATTUNE_INLINE void add_eights(int size, const float* x, const float* y, float* sum) {
  asm volatile(
      "1: vldmia %[y]!,{s0-s7}\n vldmia %[x]!,{s8-s15}\n cmp %[x],%[end]\n vadd.f32 s0,s8,s0\n "
      "vadd.f32 s1,s9,s1\n vadd.f32 s2,s10,s2\n vadd.f32 s3,s11,s3\n vadd.f32 s4,s12,s4\n "
      "vadd.f32 s5,s13,s5\n vadd.f32 s6,s14,s6\n vadd.f32 s7,s15,s7\n vstmia %[sum]!,{s0-s7}\n bne 1b"
      : [x] "+&r"(x), [y] "+&r"(y), [sum] "+&r"(sum)
      : [end] "r"(x + size)
      : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12",
        "s13", "s14", "s15");
}

// sums[cols] += Σ of the rows of x[rows, cols], which are added first. Rows are `stride` bytes apart. `cols`
// is a positive multiple of eight, rows ≥ 1.
[[gnu::noinline]] inline void add_sums_of_eights(int rows, int cols, const float* x, float* sums,
                                                 int stride) {
  do {
    const float* row = x;
    int left = rows - 1;
    asm volatile(
        "vldmia %[row],{s8-s15}\n cmp %[left],#0\n beq 2f\n"
        "1: add %[row],%[row],%[stride]\n subs %[left],%[left],#1\n vldmia %[row],{s0-s7}\n "
        "vadd.f32 s8,s8,s0\n vadd.f32 s9,s9,s1\n vadd.f32 s10,s10,s2\n vadd.f32 s11,s11,s3\n "
        "vadd.f32 s12,s12,s4\n vadd.f32 s13,s13,s5\n vadd.f32 s14,s14,s6\n vadd.f32 s15,s15,s7\n bne 1b\n"
        "2: vldmia %[sums],{s0-s7}\n vadd.f32 s0,s0,s8\n vadd.f32 s1,s1,s9\n vadd.f32 s2,s2,s10\n "
        "vadd.f32 s3,s3,s11\n vadd.f32 s4,s4,s12\n vadd.f32 s5,s5,s13\n vadd.f32 s6,s6,s14\n "
        "vadd.f32 s7,s7,s15\n vstmia %[sums]!,{s0-s7}"
        : [row] "+&r"(row), [left] "+&r"(left), [sums] "+&r"(sums)
        : [stride] "r"(stride)
        : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12",
          "s13", "s14", "s15");
    x += 8;
    cols -= 8;
  } while (cols > 0);
}

// Two scalars from each of a, b, c and d, in s0 … s7 in this order. Advances `b`.
struct FourPairs {
  float lane[8];
};

ATTUNE_INLINE FourPairs load_pairs(const float* a, const float*& b, const float* c, const float* d) {
  register float s0 asm("s0"), s1 asm("s1"), s2 asm("s2"), s3 asm("s3"), s4 asm("s4"), s5 asm("s5"),
      s6 asm("s6"), s7 asm("s7");
  asm volatile("vldr d0,[%[a]]\n vldmia %[b]!,{d1}\n vldr d2,[%[c]]\n vldr d3,[%[d]]"
               : "=t"(s0), "=t"(s1), "=t"(s2), "=t"(s3), "=t"(s4), "=t"(s5), "=t"(s6), "=t"(s7), [b] "+r"(b)
               : [a] "r"(a), [c] "r"(c), [d] "r"(d)
               : "memory");
  return {s0, s1, s2, s3, s4, s5, s6, s7};
}

// Stores the pairs of a, c and d, and advances the pointers.
ATTUNE_INLINE void store_pairs(float*& a, float*& c, float*& d, const FourPairs& from) {
  register float s0 asm("s0") = from.lane[0], s1 asm("s1") = from.lane[1], s4 asm("s4") = from.lane[4];
  register float s5 asm("s5") = from.lane[5], s6 asm("s6") = from.lane[6], s7 asm("s7") = from.lane[7];
  asm volatile("vstmia %[a]!,{d0}\n vstmia %[c]!,{d2}\n vstmia %[d]!,{d3}"
               : [a] "+r"(a), [c] "+r"(c), [d] "+r"(d)
               : "t"(s0), "t"(s1), "t"(s4), "t"(s5), "t"(s6), "t"(s7)
               : "memory");
}

// Nine coefficients of adam_update (ops/update.hpp), in its order.
struct NineScalars {
  float lane[9];
};

// adam_update of so many pairs, at least one, with epsilon outside the root and decoupled decay. p, g, m and
// v move on. The FPU takes 41 instructions for a pair. Two square roots and two divisions of them take 14
// cycles each. Beside them the core stores results, and p those of the pair before. The first time it stores
// zeros in m instead, just before m's own results. Zeros go to `cleared`, which is g, or to m again. Single
// loads pipeline, so every instruction has 32 bits.
inline constexpr bool kAdamPairs = kManyOperands && ATTUNE_SPLIT_VMLA && __ARM_ARCH == 7;  // on an M4
ATTUNE_INLINE void adam_pairs(int pairs, float*& p, const float*& g, float*& m, float*& v, float* cleared,
                              const NineScalars& c) {
  register float s16 asm("s16") = c.lane[0], s17 asm("s17") = c.lane[1], s18 asm("s18") = c.lane[2];
  register float s19 asm("s19") = c.lane[3], s20 asm("s20") = c.lane[4], s21 asm("s21") = c.lane[5];
  register float s22 asm("s22") = c.lane[6], s23 asm("s23") = c.lane[7], s24 asm("s24") = c.lane[8];
  float *p_before = m, *zeros_to = cleared == nullptr ? m : cleared;
  std::uint32_t core0 = 0, core1 = 0;
  asm volatile(
      ".p2align 2\n1: vldr s2,[%[g]]\n vldr s3,[%[g],#4]\n vldr s6,[%[v]]\n vldr s7,[%[v],#4]\n "
      "vldr s4,[%[m]]\n vldr s5,[%[m],#4]\n vldr s0,[%[p]]\n vldr s1,[%[p],#4]\n "
      // g ← gradient_scale·g, v ← β₂v + (1−β₂)g²
      "vmul.f32 s2,s2,s24\n vmul.f32 s3,s3,s24\n vmul.f32 s8,s2,s2\n vmul.f32 s9,s3,s3\n "
      "vmul.f32 s6,s6,s18\n vmul.f32 s7,s7,s18\n vmul.f32 s8,s8,s19\n vmul.f32 s9,s9,s19\n "
      "vadd.f32 s6,s8,s6\n vadd.f32 s7,s9,s7\n vmul.f32 s2,s2,s17\n vsqrt.f32 s8,s6\n "
      "strd %[core0],%[core1],[%[before]]\n mov.w %[before],%[p]\n add.w %[p],%[p],#8\n add.w %[g],%[g],#8\n "
      "strd %[zero],%[zero],[%[zeros_to]],#8\n "
      "vmov %[core0],s6\n vmov %[core1],s7\n vsqrt.f32 s9,s7\n strd %[core0],%[core1],[%[v]],#8\n "
      // m ← β₁m + (1−β₁)g
      "vmul.f32 s3,s3,s17\n vmul.f32 s4,s4,s16\n vmul.f32 s5,s5,s16\n vadd.f32 s4,s2,s4\n "
      "vadd.f32 s5,s3,s5\n "
      // p ← decay·p − step_size·m / (√v·second_scale + ε)
      "vmul.f32 s8,s8,s21\n vmul.f32 s9,s9,s21\n vmul.f32 s10,s4,s20\n vadd.f32 s8,s8,s22\n "
      "vadd.f32 s9,s9,s22\n vmul.f32 s11,s5,s20\n vdiv.f32 s8,s10,s8\n subs.w %[pairs],%[pairs],#1\n "
      "vmov %[core0],s4\n vmov %[core1],s5\n vdiv.f32 s9,s11,s9\n strd %[core0],%[core1],[%[m]],#8\n "
      "vmul.f32 s0,s0,s23\n vmul.f32 s1,s1,s23\n vsub.f32 s0,s0,s8\n vsub.f32 s1,s1,s9\n "
      "vmov %[core0],s0\n vmov %[core1],s1\n bne 1b\n strd %[core0],%[core1],[%[before]]"
      : [p] "+&r"(p), [g] "+&r"(g), [m] "+&r"(m), [v] "+&r"(v), [before] "+&r"(p_before),
        [zeros_to] "+&r"(zeros_to), [pairs] "+&r"(pairs), [core0] "+&r"(core0), [core1] "+&r"(core1)
      : "t"(s16), "t"(s17), "t"(s18), "t"(s19), "t"(s20), "t"(s21), "t"(s22), "t"(s23),
        "t"(s24), [zero] "r"(0)
      : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11");
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
