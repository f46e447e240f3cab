// Products of int8 matrices with the DSP extension (Cortex-M4, M7, M33), in assembly.
//
// Two columns of W share 16 bits: h = 256·w₁ + w₀. A word holds h for two neighboring k. With a pair x of
// 16-bit integers of a row:
//
//   SXTB16 e ← word          w₀ of both k
//   SMLAD  even += x · e     Σ x w₀
//   SMLAD  both += x · word  Σ x (256 w₁ + w₀); both − even = 256 Σ x w₁
//
// The transpose sums over columns instead. PKHBT and PKHTB combine word and e to (w₀[k], h[k]) and
// (w₀[k + 1], h[k + 1]). A pair x combines the integers of two columns:
//
//   (256 x₀ − x₁) w₀ + x₁ (256 w₁ + w₀) = 256 (x₀ w₀ + x₁ w₁)
//
// A block of 4 rows × 2 sums uses every free register: 8 sums, 4 operands, 2 pointers. A single row has 4
// sums. Sums of up to kInt8Terms terms are exact: 256 · 127² · 512 < 2³¹.
#pragma once

#include <bit>
#include <cstdint>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/cortex_m/gemm_tile.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

#if ATTUNE_CORTEX_M_FPU && defined(__ARM_FEATURE_DSP)

#define ATTUNE_INT8_DSP 1

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

inline constexpr int kInt8Terms = 512;

/// Arguments of the loops, in the order of their loads.
struct Int8Loops {
  int step;                       // bytes of W from one turn of the inner loop to the next
  const std::int16_t* panel_end;  // end of the last turn
  int next;                       // bytes of W from the end of the last turn to the next sums
  const std::int32_t* sums_end;
};

// Arguments: r0 a panel of rows, r1 W, r2 the sums, r3 Int8Loops. Values outside the inner loop are kept in
// s0 … s5. `zero` clears the sums, `turn` is a turn of the inner loop and advances r0, `finish` stores the
// sums at r2.
#define ATTUNE_INT8_LOOPS(name, zero, turn, finish)                                                        \
  [[gnu::naked]] inline void name(const std::int16_t*, const std::int8_t*, std::int32_t*,                  \
                                  const Int8Loops*) {                                                      \
    asm("push {r4-r11,lr}\n vldmia r3,{s2-s5}\n vmov s0,r0\n vmov s1,r2\n"                                 \
        "2: vmov r0,s0\n" zero                                                                             \
        ".balign 4\n"                                                                                      \
        "1:\n" turn "vmov r2,s2\n vmov r3,s3\n adds r1,r1,r2\n cmp r0,r3\n bne.w 1b\n vmov r2,s1\n" finish \
        "vmov r3,s5\n vmov s1,r2\n cmp r2,r3\n vmov r2,s4\n add r1,r1,r2\n bne.w 2b\n"                     \
        "pop {r4-r11,pc}\n");                                                                              \
  }

/// Arguments of loops that also finish the sums, in the order of their loads. Those of the transpose ignore
/// `column_scales`, those without a bias `bias`.
struct Int8FinishedLoops {
  int step;
  const std::int16_t* panel_end;
  int next;
  const float* c_end;  // of the first row
  const float* column_scales;
  const float* bias;
  int c_row;            // bytes from a row of C to the next
  const float* scales;  // of four rows
};

// Arguments: r0 a panel of four rows, r1 W, r2 C, r3 Int8FinishedLoops. s10 … s13 are scales of rows, and s16
// … s23 the sums of two columns as floats. `sums` makes them integers, `scale` floats, and `add` adds to
// them; r2, r4, r5 and r6 are then the rows of C.
#define ATTUNE_INT8_FINISHED(name, turn, sums, scale, add)                                            \
  [[gnu::naked]] inline void name(const std::int16_t*, const std::int8_t*, float*,                    \
                                  const Int8FinishedLoops*) {                                         \
    asm("push {r4-r11,lr}\n vpush {s16-s27}\n vldmia r3!,{s2-s7}\n ldrd r4,r5,[r3]\n vmov s8,r4\n"    \
        "vldmia r5,{s10-s13}\n vmov s0,r0\n vmov s1,r2\n"                                             \
        "2: vmov r0,s0\n" ATTUNE_ZERO_EIGHT                                                           \
        ".balign 4\n"                                                                                 \
        "1:\n" turn "vmov r2,s2\n vmov r3,s3\n adds r1,r1,r2\n cmp r0,r3\n bne.w 1b\n" sums           \
        "vmov s16,s17,r4,r8\n vmov s18,s19,r5,r9\n vmov s20,s21,r6,r10\n vmov s22,s23,r7,r11\n" scale \
        "vmov r2,s1\n vmov r3,s8\n adds r4,r2,r3\n adds r5,r4,r3\n adds r6,r5,r3\n" add               \
        "vstmia r2!,{s16,s17}\n vstmia r4,{s18,s19}\n vstmia r5,{s20,s21}\n vstmia r6,{s22,s23}\n"    \
        "vmov r3,s5\n vmov s1,r2\n cmp r2,r3\n vmov r2,s4\n add r1,r1,r2\n bne.w 2b\n"                \
        "vpop {s16-s27}\n pop {r4-r11,pc}\n");                                                        \
  }

#define ATTUNE_ZERO_EIGHT \
  "movs r4,#0\n movs r5,#0\n movs r6,#0\n movs r7,#0\n mov r8,r4\n mov r9,r4\n mov r10,r4\n mov r11,r4\n"
#define ATTUNE_ZERO_FOUR "movs r2,#0\n mov r10,r2\n mov r11,r2\n mov r12,r2\n mov lr,r2\n"

// Whether to interleave SMLADs with loads and extractions, which an M7 issues together. On M4 and M33, a load
// behind a load takes one cycle instead of two.
#if __ARM_ARCH == 7 && !ATTUNE_FOR_SIZE && (ATTUNE_DOUBLE_FPU || (!ATTUNE_FUSED && !ATTUNE_SPLIT_VMLA))
#define ATTUNE_ISSUES_TWO 1
#else
#define ATTUNE_ISSUES_TWO 0
#endif

// Four rows, with 16 bytes of panel for two terms. The first load of a turn advances r0 to the next turn's
// panel. An address computed just before its use would cost a cycle.
#define ATTUNE_EIGHT_STEPS(step)                                                                            \
  step(0, "[r0],#128", "[r0,#4]") step(1, "[r0,#-112]", "[r0,#-108]") step(2, "[r0,#-96]", "[r0,#-92]")     \
      step(3, "[r0,#-80]", "[r0,#-76]") step(4, "[r0,#-64]", "[r0,#-60]") step(5, "[r0,#-48]", "[r0,#-44]") \
          step(6, "[r0,#-32]", "[r0,#-28]") step(7, "[r0,#-16]", "[r0,#-12]")
#define ATTUNE_FORWARD_STEP(i, first, second)                                   \
  "ldr r2,[r1,#4*" #i "]\n ldr lr," second "\n ldr r12," first                  \
  "\n"                                                                          \
  "sxtb16 r3,r2\n smlad r5,r3,lr,r5\n smlad r9,r2,lr,r9\n smlad r4,r3,r12,r4\n" \
  "smlad r8,r2,r12,r8\n ldr r12,[r0,#16*" #i "-120]\n ldr lr,[r0,#16*" #i       \
  "-116]\n"                                                                     \
  "smlad r6,r3,r12,r6\n smlad r10,r2,r12,r10\n smlad r7,r3,lr,r7\n smlad r11,r2,lr,r11\n"
#define ATTUNE_INTERLEAVED_STEP(i, next_r12, next_r2, next_lr)                           \
  "smlad r8,r2,r12,r8\n sxtb16 r3,r2\n smlad r4,r3,r12,r4\n ldr r12,[r0,#16*" #i         \
  "-120]\n"                                                                              \
  "smlad r5,r3,lr,r5\n smlad r9,r2,lr,r9\n ldr lr,[r0,#16*" #i                           \
  "-116]\n"                                                                              \
  "smlad r6,r3,r12,r6\n smlad r10,r2,r12,r10\n" next_r12 "smlad r11,r2,lr,r11\n" next_r2 \
  "smlad r7,r3,lr,r7\n" next_lr
#define ATTUNE_INTERLEAVED(i, next)                                                            \
  ATTUNE_INTERLEAVED_STEP(i, "ldr r12,[r0,#16*" #next "-128]\n", "ldr r2,[r1,#4*" #next "]\n", \
                          "ldr lr,[r0,#16*" #next "-124]\n")
#define ATTUNE_INTERLEAVED_TURN                                                                             \
  "ldr r12,[r0],#128\n ldr r2,[r1]\n ldr lr,[r0,#-124]\n" ATTUNE_INTERLEAVED(0, 1) ATTUNE_INTERLEAVED(1, 2) \
      ATTUNE_INTERLEAVED(2, 3) ATTUNE_INTERLEAVED(3, 4) ATTUNE_INTERLEAVED(4, 5) ATTUNE_INTERLEAVED(5, 6)   \
          ATTUNE_INTERLEAVED(6, 7) ATTUNE_INTERLEAVED_STEP(7, "", "", "")
#define ATTUNE_BACKWARD_STEP(i, first, second)                                          \
  "ldr r2,[r1,#32*" #i "]\n ldr r12," first                                             \
  "\n sxtb16 r3,r2\n"                                                                   \
  "pkhbt lr,r3,r2,lsl #16\n pkhtb r2,r2,r3,asr #16\n smlad r4,lr,r12,r4\n"              \
  "smlad r8,r2,r12,r8\n ldr r3,[r0,#16*" #i "-124]\n ldr r12,[r0,#16*" #i               \
  "-120]\n"                                                                             \
  "smlad r5,lr,r3,r5\n smlad r9,r2,r3,r9\n smlad r6,lr,r12,r6\n smlad r10,r2,r12,r10\n" \
  "ldr r12,[r0,#16*" #i "-116]\n smlad r7,lr,r12,r7\n smlad r11,r2,r12,r11\n"
#define ATTUNE_ODD(even, both) "sub " both "," both "," even "\n"
#define ATTUNE_STORE_EIGHT "stmia r2!,{r4-r11}\n"

#define ATTUNE_EACH_SUM(first, second)                                                                  \
  first("s16") second("s17") first("s18") second("s19") first("s20") second("s21") first("s22") second( \
      "s2"                                                                                              \
      "3")
#define ATTUNE_EACH_PAIR(what) \
  what("s16", "s17", "s10") what("s18", "s19", "s11") what("s20", "s21", "s12") what("s22", "s23", "s13")
#define ATTUNE_WHOLE(s) "vcvt.f32.s32 " s "," s "\n"
#define ATTUNE_FRACTION(s) "vcvt.f32.s32 " s "," s ",#8\n"
#define ATTUNE_TIMES_ROW(even, odd, scale) \
  "vmul.f32 " even "," even "," scale "\n vmul.f32 " odd "," odd "," scale "\n"
#define ATTUNE_TIMES_BOTH(even, odd, scale)                                                                  \
  "vmul.f32 s26,s14," scale "\n vmul.f32 s27,s15," scale "\n vmul.f32 " even "," even ",s26\n vmul.f32 " odd \
  "," odd ",s27\n"
#define ATTUNE_PLUS_BIAS(even, odd, scale) "vadd.f32 " even "," even ",s24\n vadd.f32 " odd "," odd ",s25\n"
#define ATTUNE_PLUS_C(row, even, odd) \
  "vldmia " row ",{s24,s25}\n vadd.f32 " even ",s24," even "\n vadd.f32 " odd ",s25," odd "\n"
#define ATTUNE_FORWARD_SCALES                                                                       \
  "vmov r2,s6\n vldmia r2!,{s14,s15}\n vmov s6,r2\n" ATTUNE_EACH_SUM(ATTUNE_WHOLE, ATTUNE_FRACTION) \
      ATTUNE_EACH_PAIR(ATTUNE_TIMES_BOTH)
#define ATTUNE_BACKWARD_SCALES \
  ATTUNE_EACH_SUM(ATTUNE_FRACTION, ATTUNE_FRACTION) ATTUNE_EACH_PAIR(ATTUNE_TIMES_ROW)
#define ATTUNE_ADD_BIAS "vmov r3,s7\n vldmia r3!,{s24,s25}\n vmov s7,r3\n" ATTUNE_EACH_PAIR(ATTUNE_PLUS_BIAS)
#define ATTUNE_ADD_C                \
  ATTUNE_PLUS_C("r2", "s16", "s17") \
  ATTUNE_PLUS_C("r4", "s18", "s19") ATTUNE_PLUS_C("r5", "s20", "s21") ATTUNE_PLUS_C("r6", "s22", "s23")

/// Sums of 4 rows, one column after the other: [2 · count][4]. The panel is x as [k / 2][4][2].
#if ATTUNE_ISSUES_TWO
#define ATTUNE_FORWARD_TURN ATTUNE_INTERLEAVED_TURN
#else
#define ATTUNE_FORWARD_TURN ATTUNE_EIGHT_STEPS(ATTUNE_FORWARD_STEP)
#endif
#define ATTUNE_FORWARD_SUMS \
  ATTUNE_ODD("r4", "r8") ATTUNE_ODD("r5", "r9") ATTUNE_ODD("r6", "r10") ATTUNE_ODD("r7", "r11")
ATTUNE_INT8_LOOPS(int8_forward_rows, ATTUNE_ZERO_EIGHT, ATTUNE_FORWARD_TURN,
                  ATTUNE_FORWARD_SUMS ATTUNE_STORE_EIGHT)
/// The same with C = A·B, + bias, and +=, two columns at a time.
ATTUNE_INT8_FINISHED(int8_forward, ATTUNE_FORWARD_TURN, ATTUNE_FORWARD_SUMS, ATTUNE_FORWARD_SCALES, "")
ATTUNE_INT8_FINISHED(int8_forward_bias, ATTUNE_FORWARD_TURN, ATTUNE_FORWARD_SUMS, ATTUNE_FORWARD_SCALES,
                     ATTUNE_ADD_BIAS)
ATTUNE_INT8_FINISHED(int8_forward_add, ATTUNE_FORWARD_TURN, ATTUNE_FORWARD_SUMS, ATTUNE_FORWARD_SCALES,
                     ATTUNE_ADD_C)
/// Sums of 4 rows, one k after the other: [2 · count][4]. The panel is (256 x₀ − x₁, x₁) as [columns /
/// 2][4][2].
#define ATTUNE_BACKWARD_TURN ATTUNE_EIGHT_STEPS(ATTUNE_BACKWARD_STEP)
ATTUNE_INT8_LOOPS(int8_backward_rows, ATTUNE_ZERO_EIGHT, ATTUNE_BACKWARD_TURN, ATTUNE_STORE_EIGHT)
ATTUNE_INT8_FINISHED(int8_backward, ATTUNE_BACKWARD_TURN, "", ATTUNE_BACKWARD_SCALES, "")
ATTUNE_INT8_FINISHED(int8_backward_add, ATTUNE_BACKWARD_TURN, "", ATTUNE_BACKWARD_SCALES, ATTUNE_ADD_C)

// One row: eight terms in r4 … r7, sums in r10, r11, r12 and lr. Loads are grouped as far as registers allow.
#define ATTUNE_LOAD_TERMS "ldr r5,[r0,#4]\n ldr r6,[r0,#8]\n ldr r7,[r0,#12]\n ldr r4,[r0],#16\n"
#define ATTUNE_LOAD_WORD(w, at) "ldr " w ",[r1,#" at "]\n"
#define ATTUNE_PAIR(w, x, even, both) \
  "sxtb16 r3," w "\n smlad " even ",r3," x "," even "\n smlad " both "," w "," x "," both "\n"
#define ATTUNE_FIRST_PAIR(w, x) ATTUNE_PAIR(w, x, "r10", "r11")
#define ATTUNE_SECOND_PAIR(w, x) ATTUNE_PAIR(w, x, "r12", "lr")
#define ATTUNE_FORWARD_HALF(at)                                                                          \
  ATTUNE_LOAD_TERMS ATTUNE_LOAD_WORD("r8", at) ATTUNE_LOAD_WORD("r9", at "+32")                          \
      ATTUNE_LOAD_WORD("r2", at "+4") ATTUNE_FIRST_PAIR("r8", "r4") ATTUNE_SECOND_PAIR("r9", "r4")       \
          ATTUNE_FIRST_PAIR("r2", "r5") ATTUNE_LOAD_WORD("r8", at "+36") ATTUNE_LOAD_WORD("r9", at "+8") \
              ATTUNE_LOAD_WORD("r2", at "+40") ATTUNE_LOAD_WORD("r4", at "+12")                          \
                  ATTUNE_SECOND_PAIR("r8", "r5") ATTUNE_FIRST_PAIR("r9", "r6")                           \
                      ATTUNE_SECOND_PAIR("r2", "r6") ATTUNE_FIRST_PAIR("r4", "r7")                       \
                          ATTUNE_LOAD_WORD("r8", at "+44") ATTUNE_SECOND_PAIR("r8", "r7")
#define ATTUNE_TWO_K(w, x, first, second)                                                           \
  "sxtb16 r3," w "\n pkhbt r2,r3," w ",lsl #16\n pkhtb r3," w ",r3,asr #16\n smlad " first ",r2," x \
  "," first "\n smlad " second ",r3," x "," second "\n"
#define ATTUNE_FIRST_K(w, x) ATTUNE_TWO_K(w, x, "r10", "r11")
#define ATTUNE_SECOND_K(w, x) ATTUNE_TWO_K(w, x, "r12", "lr")
#define ATTUNE_BACKWARD_HALF(at)                                                                           \
  ATTUNE_LOAD_TERMS ATTUNE_LOAD_WORD("r8", at) ATTUNE_LOAD_WORD("r9", at "+4") ATTUNE_FIRST_K("r8", "r4")  \
      ATTUNE_SECOND_K("r9", "r4") ATTUNE_LOAD_WORD("r8", at "+32") ATTUNE_LOAD_WORD("r9", at "+36")        \
          ATTUNE_LOAD_WORD("r4", at "+64") ATTUNE_FIRST_K("r8", "r5") ATTUNE_SECOND_K("r9", "r5")          \
              ATTUNE_FIRST_K("r4", "r6") ATTUNE_LOAD_WORD("r8", at "+68") ATTUNE_LOAD_WORD("r9", at "+96") \
                  ATTUNE_LOAD_WORD("r4", at "+100") ATTUNE_SECOND_K("r8", "r6") ATTUNE_FIRST_K("r9", "r7") \
                      ATTUNE_SECOND_K("r4", "r7")
#define ATTUNE_STORE_FOUR "stmia r2!,{r10,r11,r12,lr}\n"

/// Sums of one row and four columns: [count][4]. The panel is x.
ATTUNE_INT8_LOOPS(int8_forward_row, ATTUNE_ZERO_FOUR, ATTUNE_FORWARD_HALF("0") ATTUNE_FORWARD_HALF("16"),
                  ATTUNE_ODD("r10", "r11") ATTUNE_ODD("r12", "lr") ATTUNE_STORE_FOUR)
/// Sums of one row and four k: [count][4]. The panel is (256 x₀ − x₁, x₁) as [columns / 2].
ATTUNE_INT8_LOOPS(int8_backward_row, ATTUNE_ZERO_FOUR, ATTUNE_BACKWARD_HALF("0") ATTUNE_BACKWARD_HALF("128"),
                  ATTUNE_STORE_FOUR)

#undef ATTUNE_INT8_LOOPS
#undef ATTUNE_INT8_FINISHED
#undef ATTUNE_EACH_SUM
#undef ATTUNE_EACH_PAIR
#undef ATTUNE_WHOLE
#undef ATTUNE_FRACTION
#undef ATTUNE_TIMES_ROW
#undef ATTUNE_TIMES_BOTH
#undef ATTUNE_PLUS_BIAS
#undef ATTUNE_PLUS_C
#undef ATTUNE_FORWARD_SCALES
#undef ATTUNE_BACKWARD_SCALES
#undef ATTUNE_ADD_BIAS
#undef ATTUNE_ADD_C
#undef ATTUNE_FORWARD_SUMS
#undef ATTUNE_BACKWARD_TURN
#undef ATTUNE_ZERO_EIGHT
#undef ATTUNE_ZERO_FOUR
#undef ATTUNE_FORWARD_STEP
#undef ATTUNE_INTERLEAVED_STEP
#undef ATTUNE_INTERLEAVED
#undef ATTUNE_INTERLEAVED_TURN
#undef ATTUNE_FORWARD_TURN
#undef ATTUNE_ISSUES_TWO
#undef ATTUNE_BACKWARD_STEP
#undef ATTUNE_EIGHT_STEPS
#undef ATTUNE_ODD
#undef ATTUNE_STORE_EIGHT
#undef ATTUNE_LOAD_TERMS
#undef ATTUNE_LOAD_WORD
#undef ATTUNE_PAIR
#undef ATTUNE_FIRST_PAIR
#undef ATTUNE_SECOND_PAIR
#undef ATTUNE_FORWARD_HALF
#undef ATTUNE_TWO_K
#undef ATTUNE_FIRST_K
#undef ATTUNE_SECOND_K
#undef ATTUNE_BACKWARD_HALF
#undef ATTUNE_STORE_FOUR

// Loads eight scalars into s0 … s7; for the transpose, scalars times factors.
#define ATTUNE_EACH_OF_EIGHT(what)                                                          \
  what("s0", "s10") what("s1", "s11") what("s2", "s12") what("s3", "s13") what("s4", "s14") \
      what("s5", "s15") what("s6", "s16") what("s7", "s17")
#define ATTUNE_FOLD_FACTOR(s, factor) "vmul.f32 " s "," s "," factor "\n"
#define ATTUNE_LOAD_EIGHT "vldmia %[x]!,{s0-s7}\n"
#define ATTUNE_LOAD_FOLDED \
  ATTUNE_LOAD_EIGHT "vldmia %[factors]!,{s10-s17}\n" ATTUNE_EACH_OF_EIGHT(ATTUNE_FOLD_FACTOR)

/// The bits of the largest magnitude of 8 · `eights` scalars, times two: the shift drops the sign.
template <bool kFolded>
[[gnu::noinline]] std::uint32_t twice_largest(const float* x, [[maybe_unused]] const float* factors,
                                              int eights) {
#define ATTUNE_LARGER(r) "cmp %[most]," r ",lsl #1\n it lo\n lsllo %[most]," r ",#1\n"
#define ATTUNE_LARGER_TWO(a, b) "vmov r4,r5," a "," b "\n" ATTUNE_LARGER("r4") ATTUNE_LARGER("r5")
  std::uint32_t most = 0;
  if (eights == 0) return most;
  if constexpr (kFolded) {
    asm volatile(".balign 4\n1: " ATTUNE_LOAD_FOLDED ATTUNE_LARGER_TWO("s0", "s1")
                     ATTUNE_LARGER_TWO("s2", "s3") ATTUNE_LARGER_TWO("s4", "s5")
                         ATTUNE_LARGER_TWO("s6", "s7") "subs %[n],#1\n bne 1b"
                 : [x] "+r"(x), [factors] "+r"(factors), [most] "+r"(most), [n] "+r"(eights)
                 :
                 : "r4", "r5", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s10", "s11", "s12", "s13",
                   "s14", "s15", "s16", "s17", "cc", "memory");
  } else {
    asm volatile(".balign 4\n1: ldmia %[x]!,{r4-r6,r8-r12}\n" ATTUNE_LARGER("r4") ATTUNE_LARGER("r5")
                     ATTUNE_LARGER("r6") ATTUNE_LARGER("r8") ATTUNE_LARGER("r9") ATTUNE_LARGER("r10")
                         ATTUNE_LARGER("r11") ATTUNE_LARGER("r12") "subs %[n],#1\n bne 1b"
                 : [x] "+r"(x), [most] "+r"(most), [n] "+r"(eights)
                 :
                 : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
  }
  return most;
#undef ATTUNE_LARGER
#undef ATTUNE_LARGER_TWO
}

/// Quantizes 8 · `eights` scalars into a panel of kRows rows, as pairs (x₀, x₁); for the transpose,
/// (256 x₀ − x₁, x₁). A rounded sum has its integer in the low bits, below other bits.
template <int kRows, bool kFolded>
[[gnu::noinline]] void fill_eights(const float* x, [[maybe_unused]] const float* factors, int eights,
                                   float inverse, std::int16_t* to) {
#define ATTUNE_SCALE(s, other) "vmul.f32 " s "," s ",s8\n"
#define ATTUNE_ROUND(s, other) "vadd.f32 " s "," s ",s9\n"
#define ATTUNE_STORE_PAIR(a, b, between, at) \
  "vmov r4,r5," a "," b "\n" between "pkhbt r4,r4,r5,lsl #16\n str r4,[%[to],#" at "*%c[step]]\n"
#define ATTUNE_QUANTIZE_EIGHT(between)        \
  ATTUNE_EACH_OF_EIGHT(ATTUNE_SCALE)          \
  ATTUNE_EACH_OF_EIGHT(ATTUNE_ROUND)          \
  ATTUNE_STORE_PAIR("s0", "s1", between, "0") \
  ATTUNE_STORE_PAIR("s2", "s3", between, "1") \
  ATTUNE_STORE_PAIR("s4", "s5", between, "2") \
  ATTUNE_STORE_PAIR("s6", "s7", between, "3") "subs %[n],#1\n add %[to],%[to],#4*%c[step]\n bne 1b"
  if (eights == 0) return;
  register float scale asm("s8") = inverse;
  register float rounding asm("s9") = 0x1.8p23f;
  if constexpr (kFolded) {
    asm volatile(".balign 4\n1: " ATTUNE_LOAD_FOLDED ATTUNE_QUANTIZE_EIGHT("rsb r4,r5,r4,lsl #8\n")
                 : [x] "+r"(x), [factors] "+r"(factors), [to] "+r"(to), [n] "+r"(eights)
                 : "t"(scale), "t"(rounding), [step] "i"(4 * kRows)
                 : "r4", "r5", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s10", "s11", "s12", "s13",
                   "s14", "s15", "s16", "s17", "cc", "memory");
  } else {
    asm volatile(".balign 4\n1: " ATTUNE_LOAD_EIGHT ATTUNE_QUANTIZE_EIGHT("")
                 : [x] "+r"(x), [to] "+r"(to), [n] "+r"(eights)
                 : "t"(scale), "t"(rounding), [step] "i"(4 * kRows)
                 : "r4", "r5", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc", "memory");
  }
#undef ATTUNE_SCALE
#undef ATTUNE_ROUND
#undef ATTUNE_STORE_PAIR
#undef ATTUNE_QUANTIZE_EIGHT
}

#undef ATTUNE_EACH_OF_EIGHT
#undef ATTUNE_FOLD_FACTOR
#undef ATTUNE_LOAD_EIGHT
#undef ATTUNE_LOAD_FOLDED

/// Quantizes two vectors as two columns of W, with `step` bytes from 16 terms to the next 16. NaN and
/// infinity become any integers.
[[gnu::noinline]] inline void pack_pair(const float* even, const float* odd, int length, float even_inverse,
                                        float odd_inverse, std::int8_t* to, int step) {
#define ATTUNE_PACK_TWO(e0, e1, o0, o1, at)          \
  "vmov r4,r5," e0 "," e1 "\n vmov r6,r8," o0 "," o1 \
  "\n add r4,r4,r6,lsl #8\n add r5,r5,r8,lsl #8\n"   \
  "pkhbt r4,r4,r5,lsl #16\n str r4,[%[to],#" at "]\n"
  register float first asm("s8") = even_inverse;
  register float second asm("s9") = odd_inverse;
  register float rounding asm("s10") = 0x1.8p23f;
  int k = 0;
  for (; k + 4 <= length; k += 4) {
    std::int8_t* const four = to + k / 16 * step + k % 16 * 2;
    asm volatile(
        "vldmia %[even]!,{s0-s3}\n vldmia %[odd]!,{s4-s7}\n"
        "vmul.f32 s0,s0,s8\n vmul.f32 s1,s1,s8\n vmul.f32 s2,s2,s8\n vmul.f32 s3,s3,s8\n"
        "vmul.f32 s4,s4,s9\n vmul.f32 s5,s5,s9\n vmul.f32 s6,s6,s9\n vmul.f32 s7,s7,s9\n"
        "vadd.f32 s0,s0,s10\n vadd.f32 s1,s1,s10\n vadd.f32 s2,s2,s10\n vadd.f32 s3,s3,s10\n"
        "vadd.f32 s4,s4,s10\n vadd.f32 s5,s5,s10\n vadd.f32 s6,s6,s10\n vadd.f32 s7,s7,s10\n" ATTUNE_PACK_TWO(
            "s0", "s1", "s4", "s5", "0") ATTUNE_PACK_TWO("s2", "s3", "s6", "s7", "4")
        : [even] "+r"(even), [odd] "+r"(odd)
        : [to] "r"(four), "t"(first), "t"(second), "t"(rounding)
        : "r4", "r5", "r6", "r8", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "memory");
  }
  for (const int filled = (length + 15) / 16 * 16; k < filled; ++k) {
    std::uint32_t pair = 0;
    if (k < length) {
      pair = std::bit_cast<std::uint32_t>(add(multiply(*even++, even_inverse), 0x1.8p23f)) +
             (std::bit_cast<std::uint32_t>(add(multiply(*odd++, odd_inverse), 0x1.8p23f)) << 8);
    }
    const auto half = static_cast<std::uint16_t>(pair);
    __builtin_memcpy(to + k / 16 * step + k % 16 * 2, &half, sizeof half);
  }
#undef ATTUNE_PACK_TWO
}

// Quantizes the first scalars of a row of A (for the transpose, times factors) into a panel of kRows rows.
// Zeros follow, to kLength and beyond. Returns the scale.
template <int kRows, bool kFolded, int kLength, int kStep, class Count>
ATTUNE_INLINE float fill_int8_panel(const float* x, const float* factors, Count numbers, std::int16_t* to) {
  constexpr int kFilled = (kLength + 15) / 16 * 16;
  if constexpr (kStep != 1 && kLength <= kInt8Terms) {  // gathered, it takes half the time
    float dense[std::size_t{kLength}];
    for (int i = 0; i < numbers; ++i) dense[i] = x[i * kStep];
    return fill_int8_panel<kRows, kFolded, kLength, 1>(dense, factors, numbers, to);
  }
  const int count = numbers, eights = kStep == 1 ? count / 8 : 0;
  const auto value = [&](int i) ATTUNE_INLINE_LAMBDA {
    return kFolded ? multiply(x[i * kStep], factors[i]) : x[i * kStep];
  };
  std::uint32_t twice = twice_largest<kFolded>(x, factors, eights);
  for (int i = 8 * eights; i < count; ++i) {
    twice = larger(twice, std::bit_cast<std::uint32_t>(value(i)) << 1);
  }
  const RowScale row = row_scale(twice >> 1);
  fill_eights<kRows, kFolded>(x, factors, eights, row.inverse, to);
  const auto integer = [&](int i) ATTUNE_INLINE_LAMBDA {
    return i < count ? std::bit_cast<std::uint32_t>(add(multiply(value(i), row.inverse), 0x1.8p23f)) : 0u;
  };
  for (int i = 8 * eights; i < kFilled; i += 2) {
    const std::uint32_t first = integer(i), second = integer(i + 1);
    const std::uint32_t pair = ((kFolded ? 256u * first - second : first) & 0xFFFFu) | second << 16;
    __builtin_memcpy(to + i * kRows, &pair, sizeof pair);
  }
  return row.scale;
}

/// Whether the sum of a column is multiplied by 256: odd columns, and all columns of the transpose.
template <bool kTransposed>
constexpr bool int8_sum_is_fraction(int col) {
  return kTransposed || col % 2 != 0;
}

// Four sums as floats, kStep apart, from an even column on. A conversion from fixed point divides by 256
// before it rounds.
template <int kStep, bool kTransposed, bool kFractions>
ATTUNE_INLINE TileRow load_int8_sums(const std::int32_t* sums) {
#define ATTUNE_LOAD_SUMS(even, odd)                                                                        \
  asm("vldr %[s0],[%[sums]]\n vldr %[s1],[%[sums],#%c[step]]\n vldr %[s2],[%[sums],#2*%c[step]]\n"         \
      "vldr %[s3],[%[sums],#3*%c[step]]\n vcvt.f32.s32 %[s0],%[s0]" even "\n vcvt.f32.s32 %[s1],%[s1]" odd \
      "\n vcvt.f32.s32 %[s2],%[s2]" even "\n vcvt.f32.s32 %[s3],%[s3]" odd                                 \
      : [s0] "=t"(row.lane[0]), [s1] "=t"(row.lane[1]), [s2] "=t"(row.lane[2]), [s3] "=t"(row.lane[3])     \
      : [sums] "r"(sums), [step] "i"(4 * kStep),                                                           \
        "m"(*reinterpret_cast<const std::int32_t(*)[std::size_t{3 * kStep + 1}]>(sums)))
  TileRow row;
  if constexpr (!kFractions) {
    ATTUNE_LOAD_SUMS("", "");
  } else if constexpr (kTransposed) {
    ATTUNE_LOAD_SUMS(",#8", ",#8");
  } else {
    ATTUNE_LOAD_SUMS("", ",#8");
  }
  return row;
#undef ATTUNE_LOAD_SUMS
}

#if ATTUNE_FOR_SIZE
#define ATTUNE_UNROLL_ROWS
#else
#define ATTUNE_UNROLL_ROWS ATTUNE_UNROLL
#endif

// Writes kRows rows of C from `count` sums each, four columns at a time. C, sums and scales point to column
// `col`.
template <int kRows, int kStride, bool kFractions, class View, class Epilogue>
ATTUNE_INLINE void finish_int8(const std::int32_t* sums, const float* scales, View b, float* c, int col,
                               int count, const Epilogue& epilogue) {
  const int end = col + count;
  for (; end - col >= kTileSide; col += kTileSide, sums += kTileSide * kRows) {
    TileRow of_col{};
    if constexpr (!View::transposed) of_col = load<TileRow>(b.scale + col);
    ATTUNE_UNROLL_ROWS for (int r = 0; r < kRows; ++r) {
      const TileRow sum = load_int8_sums<kRows, View::transposed, kFractions>(sums + r);
      TileRow scale = broadcast<TileRow>(scales[r]);
      if constexpr (!View::transposed) scale = multiply(scale, of_col);
      float* const to = c + r * kStride + col;
      store(to, epilogue(multiply(sum, scale), static_cast<const float*>(to), col));
    }
  }
  for (; col < end; ++col, sums += kRows) {
    const int shift = kFractions && int8_sum_is_fraction<View::transposed>(col) ? 8 : 0;
    for (int r = 0; r < kRows; ++r) {
      float* const to = c + r * kStride + col;
      *to = epilogue(multiply(static_cast<float>(sums[r] >> shift), b.scaled(scales[r], col)),
                     static_cast<const float*>(to), col);
    }
  }
}

#undef ATTUNE_UNROLL_ROWS

/// The loops that finish the sums of four rows with an epilogue, or null.
using Int8Finish = void (*)(const std::int16_t*, const std::int8_t*, float*, const Int8FinishedLoops*);
template <bool kTransposed, class Epilogue>
inline constexpr Int8Finish kInt8Finished = nullptr;
template <bool kTransposed>
inline constexpr Int8Finish kInt8Finished<kTransposed, Assign> = kTransposed ? int8_backward : int8_forward;
template <bool kTransposed>
inline constexpr Int8Finish kInt8Finished<kTransposed, Accumulate> =
    kTransposed ? int8_backward_add : int8_forward_add;
template <>
inline constexpr Int8Finish kInt8Finished<false, AddBias<float>> = int8_forward_bias;
ATTUNE_INLINE const float* bias_of(const auto&) { return nullptr; }
ATTUNE_INLINE const float* bias_of(const AddBias<float>& epilogue) { return epilogue.bias; }

/// Whether a panel of at most 4 KB holds so many terms of four rows, or of one.
constexpr bool fits_int8_panel(int depth) { return depth <= 2048; }

// Four rows of C at a time, in steps of 16 columns; one row at a time for large depths, and for remaining
// rows. Sums of more than kInt8Terms terms are added up. A product's stack is its panel and a little more
// than 256 bytes.
template <Int8Shape shape, class View, class Epilogue>
ATTUNE_INLINE void int8_panels(const float* a, int rows, const View& b, float* c, const Epilogue& epilogue) {
  constexpr int kCols = View::Packed::kCols, kTerms = (shape.depth + 15) / 16 * 16;
  constexpr int kMax = kTerms <= kInt8Terms ? 4 : 1;
  constexpr bool kFinishes = kInt8Finished<View::transposed, Epilogue> != nullptr && shape.cols % 2 == 0;
  alignas(8) std::int16_t panel[std::size_t{kMax * kTerms}];
  alignas(8) std::int32_t sums[std::size_t{16 * kMax}];
  float scales[std::size_t{kMax}];

  const auto some_rows = [&]<int kRows>(int row) ATTUNE_INLINE_LAMBDA {
    for (int r = 0; r < kRows; ++r) {
      const float* const from = a + (row + r) * shape.a_row;
      scales[r] = fill_int8_panel<kRows, View::transposed, shape.depth, shape.a_col>(from, b.scale, b.terms,
                                                                                     panel + 2 * r);
    }
    const int begin = View::transposed ? b.first : 0, end = begin + shape.cols;
    if constexpr (kRows == 4 && kFinishes) {
      constexpr int kStep = View::transposed ? 256 : 16 * kCols,
                    kNext = (View::transposed ? 4 : 32) - kStep / 16 * kTerms;
      float* const to = c + row * shape.c_row;
      // The transpose has 16 k side by side.
      for (int k = begin, last; k < end; k = last) {
        last = View::transposed ? smaller(k / 16 * 16 + 16, end) : end;
        const std::int8_t* const weights =
            b.bytes + (View::transposed ? k / 16 * 16 * kCols + k % 16 * 2 : 0);
        const Int8FinishedLoops loops{kStep,   panel + 4 * kTerms, kNext,           to + (last - begin),
                                      b.scale, bias_of(epilogue),  4 * shape.c_row, scales};
        kInt8Finished<View::transposed, Epilogue>(panel, weights, to + (k - begin), &loops);
      }
      return;
    }
    for (int block = begin / 16; 16 * block < end; ++block) {
      const int first = larger(16 * block, begin), last = smaller(16 * block + 16, end);
      // The 16 columns of W (rows, of the transpose) from the term `from` on.
      const auto sum = [&](int from, int terms, std::int32_t* to) ATTUNE_INLINE_LAMBDA {
        constexpr int kAtOnce = kRows == 4 ? 2 : 4;  // sums of a row
        const int some = (last - 16 * block + kAtOnce - 1) / kAtOnce;
        constexpr int kStep = View::transposed ? 256 : 16 * kCols;
        const int next = (View::transposed ? 2 : 16) * kAtOnce - kStep / 16 * terms;
        const Int8Loops loops{kStep, panel + kRows * (from + terms), next, to + kRows * kAtOnce * some};
        if constexpr (View::transposed) {
          const std::int8_t* const weights = b.bytes + 16 * kCols * block + 16 * from;
          (kRows == 4 ? int8_backward_rows : int8_backward_row)(panel + kRows * from, weights, to, &loops);
        } else {
          const std::int8_t* const weights = b.bytes + kCols * from + 256 * block;
          (kRows == 4 ? int8_forward_rows : int8_forward_row)(panel + kRows * from, weights, to, &loops);
        }
      };
      if constexpr (kTerms <= kInt8Terms) {
        sum(0, kTerms, sums);
      } else {
        fill_n(sums, 16, 0);
        for (int from = 0; from < kTerms; from += kInt8Terms) {
          std::int32_t part[16];
          sum(from, smaller(kTerms - from, kInt8Terms), part);
          for (int j = 0; j < last - 16 * block; ++j) {
            sums[j] += part[j] >> (int8_sum_is_fraction<View::transposed>(j) ? 8 : 0);
          }
        }
      }
      finish_int8<kRows, shape.c_row, kTerms <= kInt8Terms>(sums + kRows * (first - 16 * block), scales, b,
                                                            c + row * shape.c_row, first - begin,
                                                            last - first, epilogue);
    }
  };
  int row = 0;
  if constexpr (kMax == 4) {
    // Two k of the transpose are side by side if the first one is even.
    const int fours = kFinishes && View::transposed && b.first % 2 != 0 ? 0 : rows;
    for (; fours - row >= 4; row += 4) some_rows.template operator()<4>(row);
  }
  for (; row < rows; ++row) some_rows.template operator()<1>(row);
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#else
#define ATTUNE_INT8_DSP 0
#endif
