// C += A·B of one to three terms on the single-precision FPU of a Cortex-M, in assembly: the weight gradient
// of a batch of one to three rows, where A's columns are contiguous.
//
// Rows of B stay in registers while all rows of C pass by, two at a time: eight columns for one term, four
// for two or three. The sums begin with their first term, and C is added last.
#pragma once

#include <attune/kernels/cortex_m/gemm_tile.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// Rows in pairs, columns in whole blocks. Strides between rows in bytes.
struct FewTermsGrid {
  int pairs, cols;
  int a_stride, b_stride, c_stride;
};
constexpr int few_terms_cols(int depth) { return depth == 1 ? 8 : 4; }

template <class Epilogue>
constexpr bool fits_few_terms(const GemmShape& shape) {
  return kManyOperands && begins_with_a_term<Epilogue>(shape) && shape.rows >= 2 &&
         shape.cols >= few_terms_cols(shape.depth);
}

template <GemmShape shape>
inline constexpr FewTermsGrid kFewTermsGrid{
    shape.rows / 2, shape.cols / few_terms_cols(shape.depth) * few_terms_cols(shape.depth), 4 * shape.a_col,
    4 * shape.b_row, 4 * shape.c_row};

// Sums of four columns, in s28 … s31: the first term, another one, and their addition to C.
#define ATTUNE_FIRST_TERM(a, b0, b1, b2, b3)                                                            \
  "vmul.f32 s28," a "," b0 "\n vmul.f32 s29," a "," b1 "\n vmul.f32 s30," a "," b2 "\n vmul.f32 s31," a \
  "," b3 "\n"
#define ATTUNE_TERM_MORE(a, b0, b1, b2, b3) \
  ATTUNE_MACS("s28", a, b0, "s29", a, b1, "s30", a, b2, "s31", a, b3, "s24", "s25", "s26", "s27")
#define ATTUNE_ADD_TO(c0, c1, c2, c3)                                                                   \
  "vadd.f32 " c0 "," c0 ",s28\n vadd.f32 " c1 "," c1 ",s29\n vadd.f32 " c2 "," c2 ",s30\n vadd.f32 " c3 \
  "," c3 ",s31\n"
#define ATTUNE_ONE_TERM(a, c0, c1, c2, c3, c4, c5, c6, c7) \
  ATTUNE_FIRST_TERM(a, "s0", "s1", "s2", "s3")             \
  ATTUNE_ADD_TO(c0, c1, c2, c3) ATTUNE_FIRST_TERM(a, "s4", "s5", "s6", "s7") ATTUNE_ADD_TO(c4, c5, c6, c7)
#define ATTUNE_ROW_OF_C(terms) \
  "vldmia %[c],{s20-s23}\n" terms ATTUNE_ADD_TO("s20", "s21", "s22", "s23") "vstmia %[c],{s20-s23}\n " \
  "add %[c],%[c],%[stride]\n"
#define ATTUNE_TWO_TERMS(a0, a1) \
  ATTUNE_FIRST_TERM(a0, "s0", "s1", "s2", "s3") ATTUNE_TERM_MORE(a1, "s4", "s5", "s6", "s7")
#define ATTUNE_THREE_TERMS(a0, a1, a2) ATTUNE_TWO_TERMS(a0, a1) ATTUNE_TERM_MORE(a2, "s8", "s9", "s10", "s11")
#define ATTUNE_FEW_TERMS_CLOBBERS                                                                         \
  "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", \
      "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27",   \
      "s28", "s29", "s30", "s31"

// C += A·B over a grid.
template <int depth>
[[gnu::noinline]] void few_terms_blocks(const float* a, const float* b, float* c, const FewTermsGrid& grid) {
  constexpr int kCols = few_terms_cols(depth);
  for (int left = grid.cols; left > 0; left -= kCols, b += kCols, c += kCols) {
    const float *a0 = a, *b0 = b;
    float* to = c;
    int pairs = grid.pairs;
    if constexpr (depth == 1) {
      float* next;
      asm volatile(
          "vldmia %[b],{s0-s7}\n"
          "1: vldmia %[a]!,{s8,s9}\n vldmia %[c],{s10-s17}\n add %[next],%[c],%[stride]\n "
          "vldmia %[next],{s18-s25}\n" ATTUNE_ONE_TERM("s8", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17")
              ATTUNE_ONE_TERM("s9", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25")
          "subs %[pairs],%[pairs],#1\n vstmia %[c],{s10-s17}\n add %[c],%[next],%[stride]\n "
          "vstmia %[next],{s18-s25}\n bne 1b"
          : [a] "+&r"(a0), [c] "+&r"(to), [next] "=&r"(next), [pairs] "+&r"(pairs)
          : [b] "r"(b0), [stride] "r"(grid.c_stride)
          : ATTUNE_FEW_TERMS_CLOBBERS);
    } else {
      const float *a1 = bytes_after(a, grid.a_stride), *a2 = bytes_after(a1, grid.a_stride);
      if constexpr (depth == 2) {
        asm volatile(
            "vldmia %[b],{s0-s3}\n add %[b],%[b],%[b_stride]\n vldmia %[b],{s4-s7}\n"
            "1: vldmia %[a0]!,{s12,s13}\n vldmia %[a1]!,{s14,s15}\n subs "
            "%[pairs],%[pairs],#1\n" ATTUNE_ROW_OF_C(ATTUNE_TWO_TERMS("s12", "s14"))
                ATTUNE_ROW_OF_C(ATTUNE_TWO_TERMS("s13", "s15")) "bne 1b"
            : [a0] "+&r"(a0), [a1] "+&r"(a1), [b] "+&r"(b0), [c] "+&r"(to), [pairs] "+&r"(pairs)
            : [b_stride] "r"(grid.b_stride), [stride] "r"(grid.c_stride)
            : ATTUNE_FEW_TERMS_CLOBBERS);
      } else {
        asm volatile(
            "vldmia %[b],{s0-s3}\n add %[b],%[b],%[b_stride]\n vldmia %[b],{s4-s7}\n add "
            "%[b],%[b],%[b_stride]\n "
            "vldmia %[b],{s8-s11}\n"
            "1: vldmia %[a0]!,{s12,s13}\n vldmia %[a1]!,{s14,s15}\n vldmia %[a2]!,{s16,s17}\n "
            "subs %[pairs],%[pairs],#1\n" ATTUNE_ROW_OF_C(ATTUNE_THREE_TERMS("s12", "s14", "s16"))
                ATTUNE_ROW_OF_C(ATTUNE_THREE_TERMS("s13", "s15", "s17")) "bne 1b"
            :
            [a0] "+&r"(a0), [a1] "+&r"(a1), [a2] "+&r"(a2), [b] "+&r"(b0), [c] "+&r"(to), [pairs] "+&r"(pairs)
            : [b_stride] "r"(grid.b_stride), [stride] "r"(grid.c_stride)
            : ATTUNE_FEW_TERMS_CLOBBERS);
      }
    }
  }
}

#undef ATTUNE_FIRST_TERM
#undef ATTUNE_TERM_MORE
#undef ATTUNE_ADD_TO
#undef ATTUNE_ONE_TERM
#undef ATTUNE_ROW_OF_C
#undef ATTUNE_TWO_TERMS
#undef ATTUNE_THREE_TERMS
#undef ATTUNE_FEW_TERMS_CLOBBERS

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
