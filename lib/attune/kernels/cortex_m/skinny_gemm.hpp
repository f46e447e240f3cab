// Products with fewer rows than a tile (cortex_m/gemm_tile.hpp) on the single-precision FPU of a Cortex-M, in
// assembly: one row by as many columns as the registers hold.
//
//   across   sixteen columns of a row-major B: sixteen sums, and multiple loads of eight scalars of B. Eight
//   k take
//            128 multiply-accumulates and 27 other instructions
//   eights   all columns of a row-major B, twelve at a time, for eight k: sums are loaded from C and stored
//   there.
//            Eight k take 96 multiply-accumulates and 12 other instructions, and 16 for all columns
//   along    eight columns of a B stored along k: eight sums, and eight k of two columns at a time. Eight k
//   take 64
//            multiply-accumulates and 11 other instructions
//
// On M4 and M33, two roundings are two instructions (cortex_m/gemm_terms.hpp), and every product with a
// row-major B is "across".
//
// Sums have the bits of the portable block. A last partial block of columns overlaps the one before; the
// epilogue applies to its new columns alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/kernels/cortex_m/gemm_tile.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

inline constexpr int kAcrossCols = 16, kAlongCols = 8;

// Strides in bytes. The functions below load the first three words in this order.
struct RowGrid;
using RowSums = void(const float* a, const void* b, float* sums, const RowGrid& grid, int blocks);
struct RowGrid {
  int b_stride;
  int depth;
  const float* zeros;
  RowSums* sums;
  int a_stride, c_stride;
  int b_step;
  std::uint16_t rows, cols, width, blocks;
  std::uint16_t twelves, fours;  // for row_in_eights(), with the gap between rows of B
  int gap;
};
static_assert(offsetof(RowGrid, cols) == 30 && offsetof(RowGrid, twelves) == 36 &&
              offsetof(RowGrid, fours) == 38 && offsetof(RowGrid, gap) == 40);

// Four terms of one a. A product with an instruction of its own overwrites b.
#define ATTUNE_FOUR_MACS(a, c0, c1, c2, c3, b0, b1, b2, b3) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, b0, b1, b2, b3)
// One k of sixteen columns.
#define ATTUNE_MACS_ACROSS(a, c0, c1, c2, c3, c4, c5, c6, c7) \
  ATTUNE_FOUR_MACS(a, c0, c1, c2, c3, "s0", "s1", "s2", "s3") \
  ATTUNE_FOUR_MACS(a, c4, c5, c6, c7, "s4", "s5", "s6", "s7")
#define ATTUNE_ACROSS(a)                                                                                   \
  "vldmia r1!,{s0-s7}\n" ATTUNE_MACS_ACROSS(                                                               \
      a, "s16", "s17", "s18", "s19", "s20", "s21", "s22",                                                  \
      "s23") "vldmia r1,{s0-s7}\n add r1,r1,r3\n" ATTUNE_MACS_ACROSS(a, "s24", "s25", "s26", "s27", "s28", \
                                                                     "s29", "s30", "s31")

// sums[16 · blocks] = Σ_k a(k)·b(k, …).
[[gnu::naked]] inline void row_across(const float*, const void*, float*, const RowGrid&, int) {
  asm("push {r4,r5,r6,r7,r8,lr}\n vpush {d8-d15}\n ldr r8,[sp,#88]\n mov r6,r0\n mov r5,r1\n "
      "ldmia r3,{r3,r4,r7}\n sub r3,r3,#32\n"
      "0: mov r0,r6\n mov r1,r5\n vldmia r7,{s16-s31}\n subs r12,r4,#8\n blo 2f\n"
      "1: vldmia r0!,{s8-s15}\n" ATTUNE_ACROSS("s8") ATTUNE_ACROSS("s9") ATTUNE_ACROSS("s10")
          ATTUNE_ACROSS("s11") ATTUNE_ACROSS("s12") ATTUNE_ACROSS("s13") ATTUNE_ACROSS("s14")
              ATTUNE_ACROSS("s15") "subs r12,r12,#8\n bhs 1b\n"
      "2: adds r12,r12,#8\n beq 4f\n"
      "3: vldmia r0!,{s8}\n" ATTUNE_ACROSS("s8") "subs r12,r12,#1\n bne 3b\n"
      "4: vstmia r2!,{s16-s31}\n add r5,r5,#64\n subs r8,r8,#1\n bne 0b\n"
      "vpop {d8-d15}\n pop {r4,r5,r6,r7,r8,pc}\n");
}

// One k of four columns, and of twelve.
#define ATTUNE_FOUR_IN_PLACE(a, row) \
  "vldmia " row "!,{s8-s11}\n" ATTUNE_FOUR_MACS(a, "s20", "s21", "s22", "s23", "s8", "s9", "s10", "s11")
#define ATTUNE_TWELVE_IN_PLACE(a, row)                                                                   \
  "vldmia " row "!,{s8-s19}\n" ATTUNE_FOUR_MACS(a, "s20", "s21", "s22", "s23", "s8", "s9", "s10", "s11") \
      ATTUNE_FOUR_MACS(a, "s24", "s25", "s26", "s27", "s12", "s13", "s14", "s15")                        \
          ATTUNE_FOUR_MACS(a, "s28", "s29", "s30", "s31", "s16", "s17", "s18", "s19")
#define ATTUNE_EIGHT_ROWS(columns)                                                                    \
  columns("s0", "r1") columns("s1", "r5") columns("s2", "r6") columns("s3", "r7") columns("s4", "r8") \
      columns("s5", "r9") columns("s6", "r10") columns("s7", "r11")
// r12 blocks of columns, at least one.
#define ATTUNE_BLOCKS_IN_PLACE(sums, macs) \
  "1: vldmia r2,{" sums "}\n" macs "subs r12,r12,#1\n vstmia r2!,{" sums "}\n bne 1b\n"
// Advances from the end of a row of B to the next row.
#define ATTUNE_NEXT_ROW(last) "ldr r12,[r3,#40]\n add r1," last ",r12\n"

// sums[cols] = Σ_k a(k)·b(k, …), for a multiple of four columns, at least 16. The grid has their number at
// byte 30, twelves of them at 36, fours after those at 38, and the gap between rows of B at 40. r1 points to
// the first of eight rows.
[[gnu::naked]] inline void row_in_eights(const float*, const void*, float*, const RowGrid&, int) {
  asm("push {r2,r4,r5,r6,r7,r8,r9,r10,r11,lr}\n vpush {d8-d15}\n ldm r3,{r4,lr}\n ldr r12,[r3,#8]\n "
      "vldmia r12,{s16-s31}\n ldrh r12,[r3,#30]\n subs r12,r12,#16\n"
      "1: vstmia r2!,{s16-s31}\n subs r12,r12,#16\n bhs 1b\n adds r12,r12,#16\n beq 2f\n"
      "1: vstmia r2!,{s16-s19}\n subs r12,r12,#4\n bne 1b\n"
      "2: subs lr,lr,#8\n blo 5f\n"
      "3: vldmia r0!,{s0-s7}\n ldr r2,[sp,#64]\n add r5,r1,r4\n add r6,r5,r4\n add r7,r6,r4\n "
      "add r8,r7,r4\n add r9,r8,r4\n add r10,r9,r4\n add r11,r10,r4\n "
      "ldrh r12,[r3,#36]\n" ATTUNE_BLOCKS_IN_PLACE("s20-s31", ATTUNE_EIGHT_ROWS(ATTUNE_TWELVE_IN_PLACE))
      "ldrh r12,[r3,#38]\n cmp r12,#0\n beq 4f\n" ATTUNE_BLOCKS_IN_PLACE(
          "s20-s23", ATTUNE_EIGHT_ROWS(ATTUNE_FOUR_IN_PLACE)) "4: " ATTUNE_NEXT_ROW("r11") "subs lr,lr,#8\n bhs 3b\n"
      "5: adds lr,lr,#8\n beq 8f\n"
      "6: vldmia r0!,{s0}\n ldr r2,[sp,#64]\n ldrh r12,[r3,#36]\n" ATTUNE_BLOCKS_IN_PLACE(
          "s20-s31", ATTUNE_TWELVE_IN_PLACE("s0", "r1")) "ldrh r12,[r3,#38]\n cmp r12,#0\n beq 7f\n"
          ATTUNE_BLOCKS_IN_PLACE("s20-s23", ATTUNE_FOUR_IN_PLACE("s0", "r1"))
      "7: " ATTUNE_NEXT_ROW("r1") "subs lr,lr,#1\n bne 6b\n"
      "8: vpop {d8-d15}\n pop {r2,r4,r5,r6,r7,r8,r9,r10,r11,pc}\n");
}

// Eight k of two columns.
#define ATTUNE_MACS_ALONG(c0, c1, a0, a1, b0, b1, b2, b3) \
  ATTUNE_MACS(c0, a0, b0, c1, a0, b1, c0, a1, b2, c1, a1, b3, b0, b1, b2, b3)
#define ATTUNE_ALONG(b0, b1, c0, c1)                                              \
  "vldmia " b0 "!,{s8-s15}\n vldmia " b1                                          \
  "!,{s16-s23}\n" ATTUNE_MACS_ALONG(c0, c1, "s0", "s1", "s8", "s16", "s9", "s17") \
      ATTUNE_MACS_ALONG(c0, c1, "s2", "s3", "s10", "s18", "s11", "s19")           \
          ATTUNE_MACS_ALONG(c0, c1, "s4", "s5", "s12", "s20", "s13", "s21")       \
              ATTUNE_MACS_ALONG(c0, c1, "s6", "s7", "s14", "s22", "s15", "s23")

// sums[8 · blocks] = Σ_k a(k)·b(k, …). The stack has A, B and the depth.
[[gnu::naked]] inline void row_along(const float*, const void*, float*, const RowGrid&, int) {
  asm("push {r0,r1,r3,r4,r5,r6,r7,r8,r9,r10,r11,lr}\n vpush {d8-d15}\n ldr r11,[sp,#112]\n "
      "ldmia r3,{r3,r12,lr}\n str r12,[sp,#72]\n"
      "0: ldrd r1,r12,[sp,#68]\n vldmia lr,{s24-s31}\n add r4,r1,r3\n "
      "add r5,r4,r3\n add r6,r5,r3\n add r7,r6,r3\n add r8,r7,r3\n add r9,r8,r3\n add r10,r9,r3\n "
      "add r0,r10,r3\n str r0,[sp,#68]\n ldr r0,[sp,#64]\n "
      "subs r12,r12,#8\n blo 2f\n"
      "1: vldmia r0!,{s0-s7}\n" ATTUNE_ALONG("r1", "r4", "s24", "s25") ATTUNE_ALONG("r5", "r6", "s26", "s27")
          ATTUNE_ALONG("r7", "r8", "s28", "s29") ATTUNE_ALONG("r9", "r10", "s30", "s31")
      "subs r12,r12,#8\n bhs 1b\n"
      "2: adds r12,r12,#8\n beq 4f\n"
      "3: vldmia r0!,{s0}\n vldmia r1!,{s8}\n vldmia r4!,{s9}\n vldmia r5!,{s10}\n vldmia r6!,{s11}\n "
      "vldmia r7!,{s12}\n vldmia r8!,{s13}\n vldmia r9!,{s14}\n vldmia r10!,{s15}\n" ATTUNE_FOUR_MACS(
          "s0", "s24", "s25", "s26", "s27", "s8", "s9", "s10", "s11")
          ATTUNE_FOUR_MACS("s0", "s28", "s29", "s30", "s31", "s12", "s13", "s14", "s15")
      "subs r12,r12,#1\n bne 3b\n"
      "4: vstmia r2!,{s24-s31}\n subs r11,r11,#1\n "
      "bne 0b\n vpop {d8-d15}\n add sp,sp,#12\n pop {r4,r5,r6,r7,r8,r9,r10,r11,pc}\n");
}

#undef ATTUNE_FOUR_MACS
#undef ATTUNE_MACS_ACROSS
#undef ATTUNE_ACROSS
#undef ATTUNE_FOUR_IN_PLACE
#undef ATTUNE_TWELVE_IN_PLACE
#undef ATTUNE_EIGHT_ROWS
#undef ATTUNE_BLOCKS_IN_PLACE
#undef ATTUNE_NEXT_ROW
#undef ATTUNE_MACS_ALONG
#undef ATTUNE_ALONG

// Multiply-accumulates from which on it is worth this code; below, the portable block takes less flash.
inline constexpr int kWorthRows = 512;

constexpr bool fits_skinny_gemm(const GemmShape& shape) {
  return shape.rows < kTileSide && shape.cols <= kMaxExtent &&
         1LL * shape.rows * shape.cols * shape.depth >= kWorthRows && shape.a_col == 1 &&
         ((shape.b_col == 1 && shape.cols >= kAcrossCols) || (shape.b_row == 1 && shape.cols >= kAlongCols));
}

// Whether it pays to copy rows of a transposed A first: those of a weight gradient in small slices.
constexpr bool fits_copied_rows(const GemmShape& shape) {
  constexpr int kMaxCopied = 64;  // scalars on the stack
  return shape.a_row == 1 && shape.a_col != 1 && shape.b_col == 1 && shape.rows * shape.depth <= kMaxCopied &&
         fits_skinny_gemm(shape.with_a(shape.depth, 1));
}

// Which takes fewer instructions of columns along B's rows, where sums may stand in C. Of one row: cycles are
// up to 4 % more there, which a token gets back elsewhere, and the last rows of a batch would not. Where a
// product is an instruction of its own, sums that come and go take more time than that.
constexpr bool are_columns_in_eights(int rows, int cols, int depth) {
  if (ATTUNE_SPLIT_VMLA) return false;
  const int across = (cols + kAcrossCols - 1) / kAcrossCols * 157;
  const int in_eights = 16 + cols / 12 * 108 + cols % 12 / 4 * 44;
  return rows == 1 && depth >= 8 && cols % 4 == 0 && in_eights < across;
}

template <GemmShape shape, bool kInPlace>
constexpr RowGrid row_grid() {
  constexpr bool kAlong = !(shape.b_col == 1 && shape.cols >= kAcrossCols);
  constexpr bool kEights = !kAlong && kInPlace && are_columns_in_eights(shape.rows, shape.cols, shape.depth);
  constexpr int kWidth = kEights ? shape.cols : kAlong ? kAlongCols : kAcrossCols;
  return {.b_stride = 4 * (kAlong ? shape.b_col : shape.b_row),
          .depth = shape.depth,
          .zeros = kNoSums,
          .sums = kEights  ? row_in_eights
                  : kAlong ? row_along
                           : row_across,
          .a_stride = 4 * shape.a_row,
          .c_stride = 4 * shape.c_row,
          .b_step = 4 * shape.b_col,
          .rows = shape.rows,
          .cols = shape.cols,
          .width = kWidth,
          .blocks = shape.cols / kWidth,
          .twelves = shape.cols / 12,
          .fours = shape.cols % 12 / 4,
          .gap = 4 * (shape.b_row - shape.cols)};
}
template <GemmShape shape, bool kInPlace>
inline constexpr RowGrid kRowGrid = row_grid<shape, kInPlace>();

/// C = epilogue(A·B) of few rows. An epilogue without a state is not passed.
template <class Epilogue, class... State>
[[gnu::noinline]] void few_rows_blocks(const float* a, const void* b, float* c, const RowGrid& grid,
                                       State... state) {
  const Epilogue epilogue{state...};
  int row = grid.rows;
  do {
    const char* b_block = static_cast<const char*>(b);
    const auto finish = [&epilogue, c](const float* sum, int at, int left) ATTUNE_INLINE_LAMBDA {
      const auto packet = [&]<class P>() ATTUNE_INLINE_LAMBDA {
        store(c + at, epilogue(load<P>(sum), static_cast<const float*>(c + at), at));
        sum += kLanes<P>;
        at += kLanes<P>;
      };
      for (; left % kTileSide != 0; --left) packet.template operator()<float>();
      for (; left != 0; left -= kTileSide) packet.template operator()<TileRow>();
    };
    if constexpr (kMayRepeat<Epilogue>) {  // sums are finished where they stand, in C
      const int begins = grid.cols - grid.width;
      grid.sums(a, b, c, grid, grid.blocks);
      if (grid.blocks * grid.width != grid.cols) {
        grid.sums(a, b_block + begins * grid.b_step, c + begins, grid, 1);
      }
      if constexpr (!std::is_same_v<Epilogue, Assign>) finish(c, 0, grid.cols);
    } else {
      for (int col = 0, rest = grid.cols; rest > 0;) {
        float sums[kAcrossCols];
        const int again = rest < grid.width ? grid.width - rest : 0, count = grid.width - again;
        grid.sums(a, b_block - again * grid.b_step, sums, grid, 1);
        finish(sums + again, col, count);
        b_block += count * grid.b_step;
        col += count;
        rest -= count;
      }
    }
    a = bytes_after(a, grid.a_stride);
    c = bytes_after(c, grid.c_stride);
  } while (--row > 0);
}

template <class Epilogue>
ATTUNE_INLINE void skinny_gemm(const float* a, const void* b, float* c, const RowGrid& grid,
                               const Epilogue& epilogue) {
  if constexpr (std::is_same_v<Epilogue, Assign>) {  // compilers know the grid: a call and nothing else
    if (grid.rows == 1 && grid.blocks * grid.width == grid.cols) {
      return grid.sums(a, b, c, grid, grid.blocks);
    }
  }
  if constexpr (std::is_empty_v<Epilogue>) {
    few_rows_blocks<Epilogue>(a, b, c, grid);
  } else {
    few_rows_blocks<Epilogue>(a, b, c, grid, epilogue);
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
