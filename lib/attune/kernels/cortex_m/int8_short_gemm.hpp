// Products of int8 matrices with sums of at most 16 terms with the DSP extension (Cortex-M4, M7, M33), in
// assembly. A weight's gradient of a short sequence is one.
//
// Both operands are pairs of 16-bit integers of neighboring terms. A block of 2 rows × 1 column keeps the
// rows' eight terms in registers, loads those of a column, and takes eight SMLADs. Sixteen sums become floats
// in registers and add to C, so none is stored.
//
//   columns of B   [cols / 8][terms / 8][8][8]     zeros need not fill terms
//   rows of A      [terms / 8][2][8], two scales   zeros fill terms
#pragma once

#include <attune/kernels/cortex_m/int8_gemm.hpp>

#if ATTUNE_INT8_DSP

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

/// The longest sums of these products.
inline constexpr int kInt8ShortTerms = 16;

/// Two rows of A.
template <int kBlocks>
struct Int8RowPair {
  std::int16_t terms[std::size_t{kBlocks}][2][8];
  float scale[2];
};

/// Arguments of the loops, in the order of their loads.
struct Int8ShortLoops {
  const std::int16_t* columns;
  const std::int16_t* columns_end;
  int row_step;   // bytes from a row of C to the next
  int pair_step;  // bytes from the end of a pair's first row to the next pair's
};

// A column's eight terms times those of two rows. The sums are r12 and lr; in the first block, they replace
// the loaded terms.
#define ATTUNE_FIRST_TERMS(row0, row1)                                                         \
  "ldmia.w r1!,{r0,r2,r3,r12}\n smuad lr,r7,r12\n smuad r12,r11,r12\n smlad lr,r4,r0,lr\n"     \
  "smlad r12,r8,r0,r12\n smlad lr,r5,r2,lr\n smlad r12,r9,r2,r12\n smlad lr,r6,r3,lr\n smlad " \
  "r12,r10,r3,r12\n"                                                                           \
  "vmov " row0 "," row1 ",lr,r12\n"
#define ATTUNE_MORE_TERMS(row0, row1)                                                                       \
  "vmov lr,r12," row0 "," row1                                                                              \
  "\n ldr r0,[r1,#4]\n ldr r2,[r1,#8]\n ldr r3,[r1,#12]\n smlad lr,r5,r0,lr\n smlad r12,r9,r0,r12\n"        \
  "ldr r0,[r1],#16\n smlad lr,r6,r2,lr\n smlad r12,r10,r2,r12\n smlad lr,r7,r3,lr\n smlad r12,r11,r3,r12\n" \
  "smlad lr,r4,r0,lr\n smlad r12,r8,r0,r12\n vmov " row0 "," row1 ",lr,r12\n"
#define ATTUNE_EIGHT_COLUMNS(terms)                                                         \
  terms("s0", "s1") terms("s2", "s3") terms("s4", "s5") terms("s6", "s7") terms("s8", "s9") \
      terms("s10", "s11") terms("s12", "s13") terms("s14", "s15")
#define ATTUNE_ONE_BLOCK ATTUNE_EIGHT_COLUMNS(ATTUNE_FIRST_TERMS)
#define ATTUNE_TWO_BLOCKS                                   \
  "vmov r0,s26\n ldmia r0,{r4-r11}\n" ATTUNE_EIGHT_COLUMNS( \
      ATTUNE_FIRST_TERMS) "vmov r0,s26\n adds r0,r0,#32\n ldmia r0,{r4-r11}\n" ATTUNE_EIGHT_COLUMNS(ATTUNE_MORE_TERMS)

// Sums in `from` become floats in `to`.
#define ATTUNE_FLOATS(convert, s0, s1, s2, s3, s4, s5, s6, s7)                                   \
  convert(s0, "s18") convert(s1, "s19") convert(s2, "s20") convert(s3, "s21") convert(s4, "s22") \
      convert(s5, "s23") convert(s6, "s24") convert(s7, "s25")
#define ATTUNE_CONVERT(s, c) "vcvt.f32.s32 " s "," s "\n"
#define ATTUNE_SCALE_FIRST(s, c) "vmul.f32 " s "," s ",s16\n"
#define ATTUNE_SCALE_SECOND(s, c) "vmul.f32 " s "," s ",s17\n"
#define ATTUNE_ADD_TO(s, c) "vadd.f32 " c "," c "," s "\n"
#define ATTUNE_FIRST_OF_C(s, c) "vmul.f32 " c "," s ",s16\n"
#define ATTUNE_SECOND_OF_C(s, c) "vmul.f32 " c "," s ",s17\n"
#define ATTUNE_FIRST_ROW(convert) ATTUNE_FLOATS(convert, "s0", "s2", "s4", "s6", "s8", "s10", "s12", "s14")
#define ATTUNE_SECOND_ROW(convert) ATTUNE_FLOATS(convert, "s1", "s3", "s5", "s7", "s9", "s11", "s13", "s15")
#define ATTUNE_ACCUMULATE \
  ATTUNE_SECOND_ROW(ATTUNE_SCALE_SECOND) ATTUNE_FIRST_ROW(ATTUNE_SCALE_FIRST)                         \
  "vldmia r2,{s18-s25}\n" ATTUNE_SECOND_ROW(ATTUNE_ADD_TO) "vstmia r2!,{s18-s25}\n"                   \
  "vldmia r0,{s18-s25}\n" ATTUNE_FIRST_ROW(ATTUNE_ADD_TO) "vstmia r0!,{s18-s25}\n"
#define ATTUNE_ASSIGN                   \
  ATTUNE_SECOND_ROW(ATTUNE_SECOND_OF_C) \
  "vstmia r2!,{s18-s25}\n" ATTUNE_FIRST_ROW(ATTUNE_FIRST_OF_C) "vstmia r0!,{s18-s25}\n"

// Arguments: r0 and r1 begin and end of the pairs of rows, r2 C, r3 Int8ShortLoops. s16 and s17 are a pair's
// scales, s26 … s31: the pair's terms, the end of pairs, two rows of C, begin and end of the columns. The
// second row is stored first, so a pair may have its first row twice.
#define ATTUNE_INT8_SHORT(name, size, load, sums, finish)                                                   \
  [[gnu::naked]] inline void name(const void*, const void*, float*, const Int8ShortLoops*) {                \
    asm("push {r3-r11,lr}\n vpush {s16-s31}\n ldmia r3,{r4-r6}\n vmov s26,s27,r0,r1\n adds r3,r2,r6\n"      \
        "vmov s28,s29,r2,r3\n vmov s30,s31,r4,r5\n"                                                         \
        "2: vmov r0,s26\n" load "vldr s16,[r0,#" size "]\n vldr s17,[r0,#" size                             \
        "+4]\n vmov r1,s30\n"                                                                               \
        ".balign 4\n"                                                                                       \
        "1:\n" sums ATTUNE_SECOND_ROW(ATTUNE_CONVERT)                                                       \
            ATTUNE_FIRST_ROW(ATTUNE_CONVERT) "vmov r0,r2,s28,s29\n" finish                                  \
                                             "vmov r3,s31\n vmov s28,s29,r0,r2\n cmp r1,r3\n bne.w 1b\n"    \
                                             "ldr r3,[sp,#64]\n ldrd r2,r3,[r3,#8]\n adds r0,r0,r3\n adds " \
                                             "r2,r0,r2\n vmov s28,s29,r0,r2\n"                              \
                                             "vmov r0,r1,s26,s27\n adds r0,r0,#" size                       \
                                             "+8\n vmov s26,r0\n cmp r0,r1\n bne.w 2b\n"                    \
                                             "vpop {s16-s31}\n pop {r3-r11,pc}\n");                         \
  }

/// Pairs of rows times columns, C = or +=, for eight terms and for sixteen.
ATTUNE_INT8_SHORT(int8_eight_terms, "32", "ldmia r0,{r4-r11}\n", ATTUNE_ONE_BLOCK, ATTUNE_ASSIGN)
ATTUNE_INT8_SHORT(int8_add_eight_terms, "32", "ldmia r0,{r4-r11}\n", ATTUNE_ONE_BLOCK, ATTUNE_ACCUMULATE)
ATTUNE_INT8_SHORT(int8_sixteen_terms, "64", "", ATTUNE_TWO_BLOCKS, ATTUNE_ASSIGN)
ATTUNE_INT8_SHORT(int8_add_sixteen_terms, "64", "", ATTUNE_TWO_BLOCKS, ATTUNE_ACCUMULATE)

#undef ATTUNE_FIRST_TERMS
#undef ATTUNE_MORE_TERMS
#undef ATTUNE_EIGHT_COLUMNS
#undef ATTUNE_ONE_BLOCK
#undef ATTUNE_TWO_BLOCKS
#undef ATTUNE_FLOATS
#undef ATTUNE_CONVERT
#undef ATTUNE_SCALE_FIRST
#undef ATTUNE_SCALE_SECOND
#undef ATTUNE_ADD_TO
#undef ATTUNE_FIRST_OF_C
#undef ATTUNE_SECOND_OF_C
#undef ATTUNE_FIRST_ROW
#undef ATTUNE_SECOND_ROW
#undef ATTUNE_ACCUMULATE
#undef ATTUNE_ASSIGN
#undef ATTUNE_INT8_SHORT

/// Rounds two terms of 8 · `eights` columns to pairs, with `step` bytes from eight columns to the next. NaN
/// and infinity become any integers.
[[gnu::noinline]] inline void pack_terms(const float* first, const float* second, int eights,
                                         float first_inverse, float second_inverse, std::int16_t* to,
                                         int step) {
#define ATTUNE_SCALE_TWO(a, b) "vmul.f32 " a "," a ",s16\n vmul.f32 " b "," b ",s17\n"
#define ATTUNE_ROUND_TWO(a, b) "vadd.f32 " a "," a ",s18\n vadd.f32 " b "," b ",s18\n"
#define ATTUNE_STORE_TWO(a, b, at) \
  "vmov r4," a "\n vmov r5," b "\n pkhbt r4,r4,r5,lsl #16\n str r4,[%[to],#" at "]\n"
#define ATTUNE_EACH_TWO(what)                                                                               \
  what("s0", "s8") what("s1", "s9") what("s2", "s10") what("s3", "s11") what("s4", "s12") what("s5", "s13") \
      what("s6", "s14") what("s7", "s15")
  if (eights == 0) return;
  register float of_first asm("s16") = first_inverse;
  register float of_second asm("s17") = second_inverse;
  register float rounding asm("s18") = 0x1.8p23f;
  asm volatile(
      ".balign 4\n1: vldmia %[first]!,{s0-s7}\n vldmia %[second]!,{s8-s15}\n" ATTUNE_EACH_TWO(
          ATTUNE_SCALE_TWO) ATTUNE_EACH_TWO(ATTUNE_ROUND_TWO) ATTUNE_STORE_TWO("s0", "s8", "0")
          ATTUNE_STORE_TWO("s1", "s9", "16") ATTUNE_STORE_TWO("s2", "s10", "32")
              ATTUNE_STORE_TWO("s3", "s11", "48") ATTUNE_STORE_TWO("s4", "s12", "64")
                  ATTUNE_STORE_TWO("s5", "s13", "80") ATTUNE_STORE_TWO("s6", "s14", "96")
                      ATTUNE_STORE_TWO("s7", "s15", "112") "subs %[n],#1\n add %[to],%[to],%[step]\n bne 1b"
      : [first] "+r"(first), [second] "+r"(second), [to] "+r"(to), [n] "+r"(eights)
      : [step] "r"(step), "t"(of_first), "t"(of_second), "t"(rounding)
      : "r4", "r5", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
        "s14", "s15", "cc", "memory");
#undef ATTUNE_SCALE_TWO
#undef ATTUNE_ROUND_TWO
#undef ATTUNE_STORE_TWO
#undef ATTUNE_EACH_TWO
}

// Quantizes `count` pairs of columns of X[8, 2 · count], times the rows' factors, as pairs of rows.
// Arguments: r0 X, r1 bytes from a row of X to the next, r2 the pairs, r3 their end, on the stack the
// factors. A division by the largest magnitude runs while the other row's is found.
[[gnu::naked]] inline void fold_eight_terms(const float*, int, Int8RowPair<1>*, const Int8RowPair<1>*,
                                            const float*) {
#define ATTUNE_LOAD_TWO(a, b) "vldmia r0,{" a "," b "}\n add r0,r0,r1\n"
#define ATTUNE_FOLD_TWO(a, b, factor) "vmul.f32 " a "," a "," factor "\n vmul.f32 " b "," b "," factor "\n"
#define ATTUNE_TAKE_EIGHT(s0, s1, s2, s3, s4, s5, s6, s7)                                            \
  "vmov r4," s0 "\n vmov r5," s1 "\n vmov r6," s2 "\n vmov r7," s3 "\n vmov r8," s4 "\n vmov r9," s5 \
  "\n vmov r10," s6 "\n vmov r11," s7 "\n"
#define ATTUNE_LARGER(r) "cmp r12," r ",lsl #1\n it lo\n lsllo r12," r ",#1\n"
#define ATTUNE_MAGNITUDE "lsrs r12,r12,#1\n cmp r12,#0x0D800000\n it lo\n movlo r12,#0\n" /* 2⁻¹⁰⁰ */
#define ATTUNE_EACH(what, s0, s1, s2, s3, s4, s5, s6, s7) \
  what(s0) what(s1) what(s2) what(s3) what(s4) what(s5) what(s6) what(s7)
#define ATTUNE_SCALE(s) "vmul.f32 " s "," s ",s26\n"
#define ATTUNE_ROUND(s) "vadd.f32 " s "," s ",s25\n"
#define ATTUNE_EVEN "s0", "s2", "s4", "s6", "s8", "s10", "s12", "s14"
#define ATTUNE_ODD "s1", "s3", "s5", "s7", "s9", "s11", "s13", "s15"
#define ATTUNE_CALL(macro, ...) macro(__VA_ARGS__)
#define ATTUNE_STORE_PAIRS                                                                                \
  "pkhbt r4,r4,r5,lsl #16\n pkhbt r5,r6,r7,lsl #16\n pkhbt r6,r8,r9,lsl #16\n pkhbt r7,r10,r11,lsl #16\n" \
  "stmia r2!,{r4-r7}\n"
  asm("push {r4-r11,lr}\n vpush {s16-s28}\n ldr r4,[sp,#88]\n vldmia r4,{s16-s23}\n"
      "movw r4,#0\n movt r4,#0x42FE\n movw r5,#0\n movt r5,#0x4B40\n vmov s24,s25,r4,r5\n"  // 127, 1.5·2²³
      ".balign 4\n"
      "1:\n" ATTUNE_LOAD_TWO("s0", "s1") ATTUNE_LOAD_TWO("s2", "s3") ATTUNE_FOLD_TWO("s0", "s1", "s16")
          ATTUNE_LOAD_TWO("s4", "s5") ATTUNE_FOLD_TWO("s2", "s3", "s17") ATTUNE_LOAD_TWO("s6", "s7")
              ATTUNE_FOLD_TWO("s4", "s5", "s18") ATTUNE_LOAD_TWO("s8", "s9")
                  ATTUNE_FOLD_TWO("s6", "s7", "s19") ATTUNE_LOAD_TWO("s10", "s11")
                      ATTUNE_FOLD_TWO("s8", "s9", "s20") ATTUNE_LOAD_TWO("s12", "s13")
                          ATTUNE_FOLD_TWO("s10", "s11", "s21") ATTUNE_LOAD_TWO("s14", "s15")
                              ATTUNE_FOLD_TWO("s12", "s13", "s22") ATTUNE_FOLD_TWO("s14", "s15", "s23")
                                  ATTUNE_CALL(ATTUNE_TAKE_EIGHT, ATTUNE_EVEN)
      "lsls r12,r4,#1\n" ATTUNE_LARGER("r5") ATTUNE_LARGER("r6") ATTUNE_LARGER("r7") ATTUNE_LARGER("r8")
          ATTUNE_LARGER("r9") ATTUNE_LARGER("r10") ATTUNE_LARGER("r11") ATTUNE_MAGNITUDE
      "vmov s27,r12\n" ATTUNE_CALL(ATTUNE_TAKE_EIGHT, ATTUNE_ODD) "vdiv.f32 s26,s24,s27\n"
      "lsls r12,r4,#1\n" ATTUNE_LARGER("r5") ATTUNE_LARGER("r6") ATTUNE_LARGER("r7") ATTUNE_LARGER("r8")
      "vdiv.f32 s27,s27,s24\n" ATTUNE_LARGER("r9") ATTUNE_LARGER("r10") ATTUNE_LARGER("r11") ATTUNE_MAGNITUDE
          ATTUNE_CALL(ATTUNE_EACH, ATTUNE_SCALE, ATTUNE_EVEN) ATTUNE_CALL(ATTUNE_EACH, ATTUNE_ROUND, ATTUNE_EVEN)
              ATTUNE_CALL(ATTUNE_TAKE_EIGHT, ATTUNE_EVEN)
      "vmov s28,r12\n vdiv.f32 s26,s24,s28\n" ATTUNE_STORE_PAIRS "sub r0,r0,r1,lsl #3\n adds r0,r0,#8\n"
          ATTUNE_CALL(ATTUNE_EACH, ATTUNE_SCALE, ATTUNE_ODD) ATTUNE_CALL(ATTUNE_EACH, ATTUNE_ROUND, ATTUNE_ODD)
              ATTUNE_CALL(ATTUNE_TAKE_EIGHT, ATTUNE_ODD)
      "vdiv.f32 s28,s28,s24\n" ATTUNE_STORE_PAIRS "vstmia r2!,{s27,s28}\n cmp r2,r3\n bne.w 1b\n"
      "vpop {s16-s28}\n pop {r4-r11,pc}\n");
#undef ATTUNE_LOAD_TWO
#undef ATTUNE_FOLD_TWO
#undef ATTUNE_TAKE_EIGHT
#undef ATTUNE_LARGER
#undef ATTUNE_MAGNITUDE
#undef ATTUNE_EACH
#undef ATTUNE_SCALE
#undef ATTUNE_ROUND
#undef ATTUNE_EVEN
#undef ATTUNE_ODD
#undef ATTUNE_CALL
#undef ATTUNE_STORE_PAIRS
}

/// Rows of A that are quantized at once.
inline constexpr int kInt8ShortRows = 16;

/// The stack that holds the integers of a column of B.
constexpr int short_column_bytes(int depth) { return (depth + 7) / 8 * 16; }

/// C[rows, cols] = or += A·B of `terms` ≤ shape.depth, whose rows are `b_row` apart. `scales` and
/// `inverses` are those of B's rows, and of columns at most shape.cols.
template <Int8Shape shape, bool kAccumulates>
[[gnu::noinline]] void short_int8_gemm(const float* a, int rows, const float* b, int b_row, int terms,
                                       int cols, const float* scales, const float* inverses, float* c) {
  constexpr int kBlocks = (shape.depth + 7) / 8, kTerms = 8 * kBlocks, kStep = 64 * kBlocks;
  constexpr auto kSums = kBlocks == 1 ? (kAccumulates ? int8_add_eight_terms : int8_eight_terms)
                                      : (kAccumulates ? int8_add_sixteen_terms : int8_sixteen_terms);
  alignas(8) std::int16_t columns[std::size_t{(shape.cols + 7) / 8 * kStep}];
  const int eights = cols / 8, rest = cols % 8;
  std::int16_t* const columns_end = columns + eights * kStep;
  for (int k = 0; k < terms; k += 2) {
    const float *const first = b + k * b_row, *const second = k + 1 < terms ? first + b_row : first;
    const float first_inverse = inverses[k], second_inverse = k + 1 < terms ? inverses[k + 1] : 0;
    const int at = k / 8 * 64 + k % 8;
    pack_terms(first, second, eights, first_inverse, second_inverse, columns + at, 2 * kStep);
    if (rest > 0) {
      float ends[2][8] = {};
      copy_n(first + 8 * eights, rest, ends[0]);
      copy_n(second + 8 * eights, rest, ends[1]);
      pack_terms(ends[0], ends[1], 1, first_inverse, second_inverse, columns_end + at, 2 * kStep);
    }
  }

  using Pair = Int8RowPair<kBlocks>;
  Pair pairs[kInt8ShortRows / 2];
  for (int row = 0; row < rows; row += kInt8ShortRows) {
    const int count = smaller(rows - row, kInt8ShortRows), whole = count / 2;
    const float* const from = a + row * shape.a_row;
    int filled = 0;
    if constexpr (shape.depth == 8 && shape.a_row == 1) {
      if (terms == 8 && whole > 0) {
        fold_eight_terms(from, 4 * shape.a_col, pairs, pairs + whole, scales);
        filled = 2 * whole;
      }
    }
    for (; filled < count; ++filled) {
      float folded[std::size_t{kTerms}] = {};
      for (int k = 0; k < terms; ++k) {
        folded[k] = multiply(from[filled * shape.a_row + k * shape.a_col], scales[k]);
      }
      Pair& pair = pairs[filled / 2];
      std::int16_t integers[std::size_t{kTerms}];
      const RowScale scale = row_scale(twice_largest<false>(folded, nullptr, kBlocks) >> 1);
      fill_eights<1, false>(folded, nullptr, kBlocks, scale.inverse, integers);
      pair.scale[filled % 2] = scale.scale;
      for (int block = 0; block < kBlocks; ++block) {
        copy_n(integers + 8 * block, 8, pair.terms[block][filled % 2]);
      }
    }
    float* to = c + row * shape.c_row;
    const auto sum = [&](const Pair* first, const Pair* last, int row_step) ATTUNE_INLINE_LAMBDA {
      if (eights > 0) {
        const Int8ShortLoops loops{columns, columns_end, row_step, 2 * row_step - 32 * eights};
        kSums(first, last, to, &loops);
      }
      if (rest > 0) {
        for (; first != last; ++first, to += 2 * shape.c_row) {
          float ends[2][8] = {};
          const int last_row = row_step == 0 ? 0 : 1;
          for (int r = 0; r <= last_row; ++r) copy_n(to + r * shape.c_row + 8 * eights, rest, ends[r]);
          const Int8ShortLoops loops{columns_end, columns_end + kStep, row_step == 0 ? 0 : 32, 0};
          kSums(first, first + 1, ends[0], &loops);
          for (int r = 0; r <= last_row; ++r) copy_n(ends[r], rest, to + r * shape.c_row + 8 * eights);
        }
      }
    };
    if (whole > 0) sum(pairs, pairs + whole, 4 * shape.c_row);
    if (count % 2 != 0) {  // twice the last row, which adds −0 first
      Pair& last = pairs[whole];
      for (int block = 0; block < kBlocks; ++block) fill_n(last.terms[block][1], 8, std::int16_t{0});
      last.scale[1] = -0.0f;
      to = c + (row + count - 1) * shape.c_row;
      sum(&last, &last + 1, 0);
    }
  }
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#endif
