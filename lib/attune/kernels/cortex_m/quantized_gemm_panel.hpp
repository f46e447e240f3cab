// Products with a quantized B (simd/dequantize.hpp) on the single-precision FPU of a Cortex-M, in assembly:
// panels of some rows and four columns.
//
// Dequantizing an 8-bit weight takes 2.5 instructions, with the scale of its row 3.5, so many rows should
// share it. s16 … s31 hold four k of four columns of B for all rows of the panel. The sums are in memory. Two
// instructions load and store those of two rows. Four rows take 64 multiply-accumulates and 14 other
// instructions; dequantizing takes 46 once a panel, with scales 67. Dequantized weights never leave the
// registers. Sums have the bits of the portable block.
//
// As in cortex_m/gemm_tile.hpp, there is one inner loop for each element and layout, and one outer loop for
// each epilogue.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/dequantize.hpp>
#include <attune/kernels/cortex_m/gemm_tile.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// One k of one row, and of two rows.
#define ATTUNE_TERMS_OF_ROW(a, c0, c1, c2, c3, b0, b1, b2, b3) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, "s4", "s5", "s6", "s7")
#define ATTUNE_TERMS_OF_ROWS(a0, a1, ...)                        \
  ATTUNE_TERMS_OF_ROW(a0, "s8", "s9", "s10", "s11", __VA_ARGS__) \
  ATTUNE_TERMS_OF_ROW(a1, "s12", "s13", "s14", "s15", __VA_ARGS__)

// Four k of a row; b0 … b3 belong to the first k.
#define ATTUNE_PANEL_TERMS(c0, c1, c2, c3, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, \
                           b15)                                                                             \
  "vldmia r0,{s0-s3}\n add r0,r0,r2\n" ATTUNE_TERMS_OF_ROW("s0", c0, c1, c2, c3, b0, b1, b2, b3)            \
      ATTUNE_TERMS_OF_ROW("s1", c0, c1, c2, c3, b4, b5, b6, b7)                                             \
          ATTUNE_TERMS_OF_ROW("s2", c0, c1, c2, c3, b8, b9, b10, b11)                                       \
              ATTUNE_TERMS_OF_ROW("s3", c0, c1, c2, c3, b12, b13, b14, b15)
// The same for one row with its sums at r5, and for two rows: together, if products need no registers. An
// address just computed costs a cycle.
#define ATTUNE_PANEL_ROW(...) \
  "vldmia r5,{s8-s11}\n" ATTUNE_PANEL_TERMS("s8", "s9", "s10", "s11", __VA_ARGS__) "vstmia r5!,{s8-s11}\n"
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_PANEL_ROWS(...)                                                     \
  "vldmia r5,{s8-s15}\n" ATTUNE_PANEL_TERMS("s8", "s9", "s10", "s11", __VA_ARGS__) \
      ATTUNE_PANEL_TERMS("s12", "s13", "s14", "s15", __VA_ARGS__) "vstmia r5!,{s8-s15}\n"
#else
#define ATTUNE_PANEL_ROWS(b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15)           \
  "vldmia r0,{s0-s3}\n add r0,r0,r2\n vldmia r5,{s8-s15}\n vldmia r0,{s4-s7}\n add "                      \
  "r0,r0,r2\n" ATTUNE_TERMS_OF_ROWS("s0", "s4", b0, b1, b2, b3)                                           \
      ATTUNE_TERMS_OF_ROWS("s1", "s5", b4, b5, b6, b7) ATTUNE_TERMS_OF_ROWS("s2", "s6", b8, b9, b10, b11) \
          ATTUNE_TERMS_OF_ROWS("s3", "s7", b12, b13, b14, b15) "vstmia r5!,{s8-s15}\n"
#endif
#define ATTUNE_PANEL_ALONG(rows)                                                                         \
  rows("s16", "s20", "s24", "s28", "s17", "s21", "s25", "s29", "s18", "s22", "s26", "s30", "s19", "s23", \
       "s27", "s31")
#define ATTUNE_PANEL_ACROSS(rows)                                                                        \
  rows("s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", \
       "s30", "s31")

// Loads four k of four columns of B.
#define ATTUNE_PANEL_B_ALONG(four, bytes)                                  \
  four("r1", ",#" bytes, "d8", "s16", "s17", "d9", "s18", "s19")           \
      four("r8", ",#" bytes, "d10", "s20", "s21", "d11", "s22", "s23")     \
          four("r9", ",#" bytes, "d12", "s24", "s25", "d13", "s26", "s27") \
              four("r3", ",#" bytes, "d14", "s28", "s29", "d15", "s30", "s31")
#define ATTUNE_PANEL_B_ROW(four, ...) four("r1", "", __VA_ARGS__) "add r1,r1,r3\n"
#define ATTUNE_PANEL_B_ACROSS(four)                                  \
  ATTUNE_PANEL_B_ROW(four, "d8", "s16", "s17", "d9", "s18", "s19")   \
  ATTUNE_PANEL_B_ROW(four, "d10", "s20", "s21", "d11", "s22", "s23") \
  ATTUNE_PANEL_B_ROW(four, "d12", "s24", "s25", "d13", "s26", "s27") \
  ATTUNE_PANEL_B_ROW(four, "d14", "s28", "s29", "d15", "s30", "s31")
#define ATTUNE_SCALE_ROW(s, b0, b1, b2, b3)                                                 \
  "vmul.f32 " b0 "," b0 "," s "\n vmul.f32 " b1 "," b1 "," s "\n vmul.f32 " b2 "," b2 "," s \
  "\n vmul.f32 " b3 "," b3 "," s "\n"
#define ATTUNE_SCALE_ROWS                                                                                   \
  "vldmia r9!,{s0-s3}\n" ATTUNE_SCALE_ROW("s0", "s16", "s17", "s18", "s19")                                 \
      ATTUNE_SCALE_ROW("s1", "s20", "s21", "s22", "s23") ATTUNE_SCALE_ROW("s2", "s24", "s25", "s26", "s27") \
          ATTUNE_SCALE_ROW("s3", "s28", "s29", "s30", "s31")
#define ATTUNE_SCALE_SINGLE "vldmia r9!,{s0}\n" ATTUNE_SCALE_ROW("s0", "s16", "s17", "s18", "s19")

// The sums of a panel, row by row. Arguments: r0 A, r1 B, r2 and r3 their strides in bytes, r4 the scales of
// B's rows, r5 the sums (rows rounded up to a multiple of 4), r8 the number of rows, r9 kNoSums, r12 the
// depth less four. Clobbers all of them, lr and all FPU registers; takes 20 bytes of stack.
// quantized_panels_product calls it with this convention, which is not C++'s. Four rows at a time; an odd
// number of rows starts with one row, an odd number of pairs with the second half. For size, two rows at a
// time.
#if ATTUNE_FOR_SIZE
#define ATTUNE_ROWS_OF_PANEL(layout) "1:\n" layout(ATTUNE_PANEL_ROWS)
#define ATTUNE_BEHIND_ONE_ROW "1b"
#else
#define ATTUNE_ROWS_OF_PANEL(layout) \
  "7: bcs.w 2f\n1:\n" layout(ATTUNE_PANEL_ROWS) "2:\n" layout(ATTUNE_PANEL_ROWS)
#define ATTUNE_BEHIND_ONE_ROW "7b"
#endif
#define ATTUNE_NARROW_PANEL(name, begin, four, layout, rest)                                \
  [[gnu::naked]] inline void name() {                                                       \
    asm("push {r6,r7,r10,r11,lr}\n mov lr,r8\n add r6,r5,r8,lsl #4\n vldmia r9,{s0-s15}\n"  \
        "0: vstmia r5!,{s0-s15}\n cmp r5,r6\n blo 0b\n" begin                               \
        "mul r4,lr,r2\n sub r4,r4,#16\n .p2align 2\n"                                       \
        "3:\n" four "sub r5,r6,lr,lsl #4\n lsls r7,lr,#31\n bmi 6f\n" ATTUNE_ROWS_OF_PANEL( \
            layout) "cmp r5,r6\n bne 1b\n sub r0,r0,r4\n subs r12,r12,#4\n bhs 3b\n" rest   \
                    "pop {r6,r7,r10,r11,pc}\n"                                              \
                    "6:\n" layout(ATTUNE_PANEL_ROW) "b " ATTUNE_BEHIND_ONE_ROW "\n");       \
  }
#define ATTUNE_NARROW_PANELS(name, begin, four, layout, single) \
  ATTUNE_NARROW_PANEL(name, begin, four, layout, "")            \
  ATTUNE_NARROW_PANEL(name##_and_rest, begin, four, layout,                                               \
                      "add r12,r12,#4\n add r4,r4,#12\n"                                                \
                      "4:\n" single "sub r5,r6,lr,lsl #4\n"                                                      \
                      "5: vldr s0,[r0]\n add r0,r0,r2\n vldmia r5,{s8-s11}\n"           \
                      ATTUNE_TERMS_OF_ROW("s0", "s8", "s9", "s10", "s11", "s16", "s17", "s18", "s19")     \
                      "vstmia r5!,{s8-s11}\n cmp r5,r6\n bne 5b\n sub r0,r0,r4\n "                      \
                      "subs r12,r12,#1\n bne 4b\n")
#define ATTUNE_NARROW_PANEL_ALONG(name, four, four_bytes, pair, bytes)             \
  ATTUNE_NARROW_PANELS(name, "add r8,r1,r3\n add r9,r8,r3\n add.w r3,r9,r3\n",     \
                       ATTUNE_PANEL_B_ALONG(four, four_bytes), ATTUNE_PANEL_ALONG, \
                       pair("d8", "s16", "s17", "[r1],#" bytes, "[r8],#" bytes)    \
                           pair("d9", "s18", "s19", "[r9],#" bytes, "[r3],#" bytes))
#define ATTUNE_NARROW_PANEL_ACROSS(name, four, scale_four, scale_single)                                 \
  ATTUNE_NARROW_PANELS(name, "mov r9,r4\n", ATTUNE_PANEL_B_ACROSS(four) scale_four, ATTUNE_PANEL_ACROSS, \
                       ATTUNE_PANEL_B_ROW(four, "d8", "s16", "s17", "d9", "s18", "s19") scale_single)

ATTUNE_NARROW_PANEL_ALONG(int8_along_panel, ATTUNE_INT8_FOUR, "4", ATTUNE_INT8_TWO, "1")
ATTUNE_NARROW_PANEL_ALONG(bfloat16_along_panel, ATTUNE_BFLOAT16_FOUR, "8", ATTUNE_BFLOAT16_TWO, "2")
ATTUNE_NARROW_PANEL_ALONG(float16_along_panel, ATTUNE_FLOAT16_FOUR, "8", ATTUNE_FLOAT16_TWO, "2")
ATTUNE_NARROW_PANEL_ACROSS(scaled_int8_across_panel, ATTUNE_INT8_FOUR, ATTUNE_SCALE_ROWS, ATTUNE_SCALE_SINGLE)
ATTUNE_NARROW_PANEL_ACROSS(bfloat16_across_panel, ATTUNE_BFLOAT16_FOUR, "", "")
ATTUNE_NARROW_PANEL_ACROSS(float16_across_panel, ATTUNE_FLOAT16_FOUR, "", "")

#undef ATTUNE_TERMS_OF_ROW
#undef ATTUNE_TERMS_OF_ROWS
#undef ATTUNE_PANEL_TERMS
#undef ATTUNE_PANEL_ROW
#undef ATTUNE_PANEL_ROWS
#undef ATTUNE_PANEL_ALONG
#undef ATTUNE_PANEL_ACROSS
#undef ATTUNE_PANEL_B_ALONG
#undef ATTUNE_PANEL_B_ROW
#undef ATTUNE_PANEL_B_ACROSS
#undef ATTUNE_SCALE_ROW
#undef ATTUNE_SCALE_ROWS
#undef ATTUNE_SCALE_SINGLE
#undef ATTUNE_ROWS_OF_PANEL
#undef ATTUNE_BEHIND_ONE_ROW
#undef ATTUNE_NARROW_PANEL
#undef ATTUNE_NARROW_PANELS
#undef ATTUNE_NARROW_PANEL_ALONG
#undef ATTUNE_NARROW_PANEL_ACROSS

ATTUNE_NARROW_BLOCKS(kPanel, panel);
ATTUNE_NARROW_BLOCKS(kPanelAndRest, panel_and_rest);

// Rows of a panel. More rows dequantize a weight less often, and take more stack for sums: 16 bytes a row.
inline constexpr int kMaxPanelRows = 32;

// Rows of a panel: about equal in all panels, and never one in the last.
constexpr int panel_rows(int rows) {
  const int panels = (rows + kMaxPanelRows - 1) / kMaxPanelRows;
  int most = (rows + panels - 1) / panels;
  while (rows % most == 1) ++most;
  return most;
}
// Sums of a panel, with rows rounded up to a multiple of four.
constexpr int panel_sums(int rows) { return (panel_rows(rows) + 3) / 4 * 4 * kTileSide; }

struct PanelGrid : TileGrid {
  int panel_rows;
};

// Products of two rows and more. B's strides count elements.
template <class B, GemmShape shape>
constexpr PanelGrid panel_grid() {
  constexpr int kBytes = static_cast<int>(sizeof(*elements_of(B{})));
  constexpr QuantizedShape kPanel =
      shape.depth % 4 == 0 ? QuantizedShape::kPanel : QuantizedShape::kPanelAndRest;
  constexpr QuantizedBlocks kBlocks = kQuantizedBlocks<B, kPanel>;
  constexpr bool kAlong = shape.b_row == 1 && kBlocks.along != nullptr;
  return {{.a_stride = 4 * shape.a_row,
           .b_stride = kBytes * (kAlong ? shape.b_col : shape.b_row),
           .pairs = shape.depth - 4,
           .tile = kAlong ? kBlocks.along : kBlocks.across,
           .c_stride = 4 * shape.c_row,
           .a_step = 4 * panel_rows(shape.rows) * shape.a_row,
           .b_step = kBytes * kTileSide * shape.b_col,
           .rows = shape.rows,
           .cols = shape.cols},
          panel_rows(shape.rows)};
}
template <class B, GemmShape shape>
inline constexpr PanelGrid kPanelGrid = panel_grid<B, shape>();

// Shared by all panels of a product: the scales of B's rows, if any, and memory for sums.
struct PanelMemory {
  const float* scale;
  float* sums;
};

// The sums of a panel.
ATTUNE_INLINE void sum_panel(const float* a, const char* b, int rows, const PanelGrid& grid,
                             const PanelMemory& memory) {
  register const float* r0 asm("r0") = a;
  register const char* r1 asm("r1") = b;
  register const float* r4 asm("r4") = memory.scale;
  register float* r5 asm("r5") = memory.sums;
  register int r8 asm("r8") = rows;
  register const float* r9 asm("r9") = kNoSums;
  asm volatile("ldmia %[grid],{r2,r3,r12,lr}\n blx lr"
               : "+r"(r0), "+r"(r1), "+r"(r4), "+r"(r5), "+r"(r8), "+r"(r9)
               : [grid] "r"(&grid)
               : "r2", "r3", "r12", "lr", "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
                 "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20",
                 "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31");
}

/// C = epilogue(A·B) over a grid of panels, for columns in whole fours. kColsLeft more columns are in a last
/// panel that overlaps the one before.
template <int kColsLeft, class Epilogue>
[[gnu::noinline]] void quantized_panels_product(const float* a, const void* b, float* c,
                                                const PanelGrid& grid, PanelMemory memory,
                                                Epilogue epilogue) {
  int rows_left = grid.rows;
  do {
    const int rows = smaller(rows_left, grid.panel_rows);
    const char* b_panel = static_cast<const char*>(b);
    int col = 0;
    do {
      sum_panel(a, b_panel, rows, grid, memory);
      const TileRow scales = column_scales<TileRow>(epilogue, col);
      const float q0 = scales.lane[0], q1 = scales.lane[1], q2 = scales.lane[2], q3 = scales.lane[3];
      const auto& finish = behind_scales(epilogue);
      const float* sum_row = memory.sums;
      float* c_row = c + col;
      const int stride = grid.c_stride;
      register float s16 asm("s16"), s17 asm("s17"), s18 asm("s18"), s19 asm("s19");
      register float s20 asm("s20"), s21 asm("s21"), s22 asm("s22"), s23 asm("s23");
      int row = rows;
      if (row % 2 != 0) {
        asm volatile("vldmia %0!,{s16-s19}"
                     : "+r"(sum_row), "=t"(s16), "=t"(s17), "=t"(s18), "=t"(s19)
                     :
                     : "memory");
        ATTUNE_FINISH_ROW(c_row, s16, s17, s18, s19)
        --row;
      }
      do {
        asm volatile("vldmia %0!,{s16-s23}"
                     : "+r"(sum_row), "=t"(s16), "=t"(s17), "=t"(s18), "=t"(s19), "=t"(s20), "=t"(s21),
                       "=t"(s22), "=t"(s23)
                     :
                     : "memory");
        ATTUNE_FINISH_ROW(c_row, s16, s17, s18, s19)
        ATTUNE_FINISH_ROW(c_row, s20, s21, s22, s23)
        row -= 2;
      } while (row != 0);
      b_panel += grid.b_step;
      col += kTileSide;
    } while (col <= grid.cols - kTileSide);
    if constexpr (kColsLeft > 0) {
      sum_panel(a, b_panel - (kTileSide - kColsLeft) * (grid.b_step / kTileSide), rows, grid, memory);
      for (int i = 0; i < rows; ++i) {
        float* to = bytes_after(c + col, i * grid.c_stride);
        for (int j = 0; j < kColsLeft; ++j) {
          const float sum = memory.sums[(i + 1) * kTileSide - kColsLeft + j];
          to[j] = epilogue(sum, static_cast<const float*>(to + j), col + j);
        }
      }
    }
    a = bytes_after(a, grid.a_step);
    c = bytes_after(c, rows * grid.c_stride);
    rows_left -= rows;
  } while (rows_left != 0);
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
