// The 2×8 register block of products on the single-precision FPU of a Cortex-M, in assembly, for A stored
// along k. On an M4 with one instruction a term (cortex_m/gemm_terms.hpp) it is faster than 4×4.
//
// It loads four k of two rows of A at a time, and eight columns of one k of B, or four k of a column. Four k
// take 64 multiply-accumulates and 12 or 14 other instructions; 4×4 takes 20. Every other k it loads one word
// more, by multiple loads twice as long, in the same number of cycles.
//
// Sums have the bits of the portable block.
#pragma once

#include <attune/kernels/cortex_m/gemm_tile.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// One k of both rows.
#define ATTUNE_MACS_K(a0, a1)                                                                 \
  ATTUNE_MACS("s16", a0, "s8", "s17", a0, "s9", "s18", a0, "s10", "s19", a0, "s11", , , , )   \
  ATTUNE_MACS("s20", a0, "s12", "s21", a0, "s13", "s22", a0, "s14", "s23", a0, "s15", , , , ) \
  ATTUNE_MACS("s24", a1, "s8", "s25", a1, "s9", "s26", a1, "s10", "s27", a1, "s11", , , , )   \
  ATTUNE_MACS("s28", a1, "s12", "s29", a1, "s13", "s30", a1, "s14", "s31", a1, "s15", , , , )
#define ATTUNE_K_ACROSS(a0, a1) "vldmia r1,{s8-s15}\n add r1,r1,r3\n" ATTUNE_MACS_K(a0, a1)
// Four k of two columns.
#define ATTUNE_COLUMNS_ALONG(b0, b1, c0, c1, d0, d1)                                                    \
  "vldmia " b0 "!,{s8-s11}\n vldmia " b1                                                                \
  "!,{s12-s15}\n" ATTUNE_MACS(c0, "s0", "s8", c1, "s0", "s12", d0, "s4", "s8", d1, "s4", "s12", , , , ) \
      ATTUNE_MACS(c0, "s1", "s9", c1, "s1", "s13", d0, "s5", "s9", d1, "s5", "s13", , , , )             \
          ATTUNE_MACS(c0, "s2", "s10", c1, "s2", "s14", d0, "s6", "s10", d1, "s6", "s14", , , , )       \
              ATTUNE_MACS(c0, "s3", "s11", c1, "s3", "s15", d0, "s7", "s11", d1, "s7", "s15", , , , )

// As ATTUNE_TILE_FUNCTIONS, but r12 is the depth: a multiple of four, or any number. s16 … s23 are the sums
// of one row, s24 … s31 those of the other.
#define ATTUNE_WIDE_TILE(name, begin, four_k, one_k, end)                                           \
  [[gnu::naked]] inline void name() {                                                               \
    asm("add r2,r0,r2\n" begin ".p2align 2\n1: vldmia r0!,{s0-s3}\n vldmia r2!,{s4-s7}\n" four_k    \
        "subs r12,r12,#4\n bne 1b\n" end "bx lr\n");                                                \
  }                                                                                                 \
  [[gnu::naked]] inline void name##_rest() {                                                        \
    asm("add r2,r0,r2\n" begin                                                                      \
        "subs r12,r12,#4\n blt 2f\n"                                                                \
        ".p2align 2\n1: vldmia r0!,{s0-s3}\n vldmia r2!,{s4-s7}\n" four_k                           \
        "subs r12,r12,#4\n bge 1b\n"                                                                \
        "2: add r12,r12,#4\n"                                                                       \
        "3: vldmia r0!,{s0}\n vldmia r2!,{s4}\n" one_k "subs r12,r12,#1\n bne 3b\n" end "bx lr\n"); \
  }

ATTUNE_WIDE_TILE(tile_wide_nn, "",
                 ATTUNE_K_ACROSS("s0", "s4") ATTUNE_K_ACROSS("s1", "s5") ATTUNE_K_ACROSS("s2", "s6")
                     ATTUNE_K_ACROSS("s3", "s7"),
                 ATTUNE_K_ACROSS("s0", "s4"), )
ATTUNE_WIDE_TILE(tile_wide_nt,
                 "push {r10,r11}\n add r4,r1,r3\n add r5,r4,r3\n add r8,r5,r3\n add r9,r8,r3\n "
                 "add r10,r9,r3\n add r11,r10,r3\n add.w r3,r11,r3\n",
                 ATTUNE_COLUMNS_ALONG("r1", "r4", "s16", "s17", "s24", "s25")
                     ATTUNE_COLUMNS_ALONG("r5", "r8", "s18", "s19", "s26", "s27")
                         ATTUNE_COLUMNS_ALONG("r9", "r10", "s20", "s21", "s28", "s29")
                             ATTUNE_COLUMNS_ALONG("r11", "r3", "s22", "s23", "s30", "s31"),
                 "vldmia r1!,{s8}\n vldmia r4!,{s9}\n vldmia r5!,{s10}\n vldmia r8!,{s11}\n "
                 "vldmia r9!,{s12}\n vldmia r10!,{s13}\n vldmia r11!,{s14}\n "
                 "vldmia r3!,{s15}\n" ATTUNE_MACS_K("s0", "s4"),
                 "pop {r10,r11}\n")

#undef ATTUNE_MACS_K
#undef ATTUNE_K_ACROSS
#undef ATTUNE_COLUMNS_ALONG
#undef ATTUNE_WIDE_TILE

// Whether a product uses it: not for a single column next to whole tiles.
constexpr bool fits_wide_tile(const GemmShape& shape) {
  return ATTUNE_WIDE_TILES && !ATTUNE_SPLIT_VMLA && shape.rows >= tile_rows(TileShape::kWide) &&
         shape.cols >= tile_cols(TileShape::kWide) && shape.a_col == 1 &&
         (shape.b_row == 1 || shape.b_col == 1) && tiled(TileShape::kWide, 0, shape.cols).cols == shape.cols;
}

template <GemmShape shape>
inline constexpr auto kWideGrid = with_rests<TileShape::kWide, shape.rows, shape.cols>(
    {.a_stride = 4 * shape.a_row,
     .b_stride = 4 * (shape.b_col != 1 ? shape.b_col : shape.b_row),
     .pairs = shape.depth,
     .tile = shape.depth % 4 == 0 ? (shape.b_col != 1 ? tile_wide_nt : tile_wide_nn)
                                  : (shape.b_col != 1 ? tile_wide_nt_rest : tile_wide_nn_rest),
     .c_stride = 4 * shape.c_row,
     .a_step = 4 * tile_rows(TileShape::kWide) * shape.a_row,
     .b_step = 4 * tile_cols(TileShape::kWide) * shape.b_col,
     .rows = shape.rows / tile_rows(TileShape::kWide),
     .cols = shape.cols / tile_cols(TileShape::kWide) * tile_cols(TileShape::kWide)});

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
