// Register blocks of products with a quantized B (simd/dequantize.hpp) on the single-precision FPU of a
// Cortex-M, in assembly: 8 rows × 2 columns, and 4 × 4. Their sums stay in registers, which pays for few
// rows. For more rows, cortex_m/quantized_gemm_panel.hpp dequantizes less often.
//
// s16 … s31 are sums. s4 … s11 hold four k of two columns of B; s0 … s3 and s12 … s15 hold those of two rows
// of A. Four k take 64 multiply-accumulates and 30 other instructions (with scales of rows 41, with 16-bit
// weights 26). Sums have the bits of the portable block.
//
// The small block is that of cortex_m/gemm_tile.hpp. Two k take 32 multiply-accumulates and 26 other
// instructions (37; 22).
//
// As in cortex_m/gemm_tile.hpp, there is one inner loop for each element and layout, and one outer loop for
// each epilogue.
#pragma once

#include <type_traits>

#include <attune/kernels/cortex_m/dequantize.hpp>
#include <attune/kernels/cortex_m/gemm_tile.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

inline constexpr int kQuantizedRows = 8, kQuantizedCols = 2;

// Two scalars of a row of C, as a packet for epilogues.
struct TilePair {
  float lane[kQuantizedCols];

  ATTUNE_INLINE friend TilePair add(const TilePair& a, const TilePair& b) {
    return {a.lane[0] + b.lane[0], a.lane[1] + b.lane[1]};
  }
  ATTUNE_INLINE friend TilePair multiply(const TilePair& a, const TilePair& b) {
    return {a.lane[0] * b.lane[0], a.lane[1] * b.lane[1]};
  }
};

}  // namespace detail

template <>
struct PacketTraits<detail::TilePair> {
  using Scalar = float;
  using Half = detail::TilePair;
  static constexpr int kLanes = detail::kQuantizedCols;

  // volatile keeps the load of a row next to its use, where these registers are free.
  ATTUNE_INLINE static detail::TilePair load(const float* from) {
    register float s0 asm("s0");
    register float s1 asm("s1");
    asm volatile("vldmia %2,{s0-s1}"
                 : "=t"(s0), "=t"(s1)
                 : "r"(from), "m"(*reinterpret_cast<const float(*)[kLanes]>(from)));
    return {s0, s1};
  }
  ATTUNE_INLINE static detail::TilePair broadcast(float value) { return {value, value}; }
};

namespace detail {

// Four k of two rows, for B along k or across. Row by row if products need registers.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_ROW(from, c0, c1, b0, b1, b2, b3, b4, b5, b6, b7)                                          \
  "vldmia " from "!,{s0-s3}\n" ATTUNE_MACS(c0, "s0", b0, c1, "s0", b1, c0, "s1", b2, c1, "s1", b3, "s12", \
                                           "s13", "s14", "s15")                                           \
      ATTUNE_MACS(c0, "s2", b4, c1, "s2", b5, c0, "s3", b6, c1, "s3", b7, "s12", "s13", "s14", "s15")
#define ATTUNE_ROWS(from0, from1, c0, c1, c2, c3, ...) \
  ATTUNE_ROW(from0, c0, c1, __VA_ARGS__) ATTUNE_ROW(from1, c2, c3, __VA_ARGS__)
#else
#define ATTUNE_K_OF_ROWS(c0, c1, c2, c3, a0, a1, b0, b1) \
  ATTUNE_MACS(c0, a0, b0, c1, a0, b1, c2, a1, b0, c3, a1, b1, , , , )
#define ATTUNE_ROWS(from0, from1, c0, c1, c2, c3, b0, b1, b2, b3, b4, b5, b6, b7) \
  "vldmia " from0 "!,{s0-s3}\n vldmia " from1                                     \
  "!,{s12-s15}\n" ATTUNE_K_OF_ROWS(c0, c1, c2, c3, "s0", "s12", b0, b1)           \
      ATTUNE_K_OF_ROWS(c0, c1, c2, c3, "s1", "s13", b2, b3)                       \
          ATTUNE_K_OF_ROWS(c0, c1, c2, c3, "s2", "s14", b4, b5)                   \
              ATTUNE_K_OF_ROWS(c0, c1, c2, c3, "s3", "s15", b6, b7)
#endif
#define ATTUNE_ROWS_ALONG(...) ATTUNE_ROWS(__VA_ARGS__, "s4", "s8", "s5", "s9", "s6", "s10", "s7", "s11")
#define ATTUNE_ROWS_ACROSS(...) ATTUNE_ROWS(__VA_ARGS__, "s4", "s6", "s5", "s7", "s10", "s8", "s11", "s9")
#define ATTUNE_ROWS_ACROSS_NEXT(...) \
  ATTUNE_ROWS(__VA_ARGS__, "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")
#define ATTUNE_ROWS_SINGLE(from0, from1, c0, c1, c2, c3)           \
  "vldmia " from0 "!,{s0}\n vldmia " from1 "!,{s1}\n" ATTUNE_MACS( \
      c0, "s0", "s4", c1, "s0", "s5", c2, "s1", "s4", c3, "s1", "s5", "s12", "s13", "s14", "s15")
#define ATTUNE_ALL_ROWS(rows)                                                               \
  rows("r0", "lr", "s16", "s17", "s18", "s19") rows("r5", "r6", "s20", "s21", "s22", "s23") \
      rows("r8", "r9", "s24", "s25", "s26", "s27") rows("r10", "r2", "s28", "s29", "s30", "s31")

// Loads four k of both columns: along k two of a column in a pair, across in an order with fewer steps from
// row to row.
#define ATTUNE_B_ALONG(next, bytes)                              \
  next("d2", "s4", "s5", "[r1],#" bytes, "[r1],#" bytes)         \
      next("d3", "s6", "s7", "[r1],#" bytes, "[r1],#" bytes)     \
          next("d4", "s8", "s9", "[r3],#" bytes, "[r3],#" bytes) \
              next("d5", "s10", "s11", "[r3],#" bytes, "[r3],#" bytes)
#define ATTUNE_B_ROW(pair, bytes, d, s0, s1) pair(d, s0, s1, "[r1]", "[r1,#" bytes "]") "add r1,r1,r3\n"
#define ATTUNE_B_ACROSS(pair, bytes)                                                                        \
  pair("d2", "s4", "s5", "[r1]", "[r1,r3]")                                                                 \
      pair("d3", "s6", "s7", "[r1,#" bytes "]!", "[r1,r3]") "add r1,r1,r3,lsl #1\n" pair("d4", "s8", "s9",  \
                                                                                         "[r1]", "[r1,r3]") \
          pair("d5", "s10", "s11", "[r1,#-" bytes "]!", "[r1,r3]") "add r1,r1,r3,lsl #1\n"
#define ATTUNE_B_ACROSS_NEXT(next)                                                               \
  next("d2", "s4", "s5", "[r1]") next("d3", "s6", "s7", "[r1,r3]") "add r1,r1,r3,lsl #1\n" next( \
      "d4", "s8", "s9", "[r1]") next("d5", "s10", "s11", "[r1,r3]") "add r1,r1,r3,lsl #1\n"
#define ATTUNE_SCALE_FOUR                                                                                \
  "vldmia r4!,{s0-s3}\n vmul.f32 s4,s4,s0\n vmul.f32 s6,s6,s0\n vmul.f32 s5,s5,s1\n vmul.f32 s7,s7,s1\n" \
  "vmul.f32 s10,s10,s2\n vmul.f32 s8,s8,s2\n vmul.f32 s11,s11,s3\n vmul.f32 s9,s9,s3\n"
#define ATTUNE_SCALE_SINGLE "vldmia r4!,{s0}\n vmul.f32 s4,s4,s0\n vmul.f32 s5,s5,s0\n"

// Adds to the sums of one block in s16 … s31. Arguments: r0 A, r1 B, r2 and r3 their strides in bytes, r12
// the depth less four, r4 the scales of B's rows. Clobbers all of them, lr, r5, r8, r9 and s0 … s15; takes 20
// bytes of stack. quantized_tiles_product calls it with this convention, which is not C++'s. Eight k at a
// time; an odd number of fours starts with the second half.
#define ATTUNE_NARROW_TILE(name, lines_of_b, four, rows, rest)                                   \
  [[gnu::naked]] inline void name() {                                                            \
    asm("push {r6,r7,r10,r11,lr}\n add lr,r0,r2\n add r5,lr,r2\n add r6,r5,r2\n add r8,r6,r2\n " \
        "add r9,r8,r2\n add r10,r9,r2\n add.w r2,r10,r2\n" lines_of_b                            \
        "tst r12,#4\n beq 2f\n .p2align 2\n"                                                     \
        "1:\n" four ATTUNE_ALL_ROWS(rows) "2:\n" four ATTUNE_ALL_ROWS(                           \
            rows) "subs r12,r12,#8\n bhs 1b\n" rest "pop {r6,r7,r10,r11,pc}\n");                 \
  }
#define ATTUNE_NARROW_TILES(name, lines_of_b, four, rows, single) \
  ATTUNE_NARROW_TILE(name, lines_of_b, four, rows, "")            \
  ATTUNE_NARROW_TILE(name##_and_rest, lines_of_b, four, rows,     \
                     "and r12,r12,#3\n"                           \
                     "3:\n" single ATTUNE_ALL_ROWS(ATTUNE_ROWS_SINGLE) "subs r12,r12,#1\n bne 3b\n")
#define ATTUNE_NARROW_TILE_ALONG(name, next, next_bytes, pair, bytes)                                \
  ATTUNE_NARROW_TILES(name, "add.w r3,r1,r3\n", ATTUNE_B_ALONG(next, next_bytes), ATTUNE_ROWS_ALONG, \
                      pair("d2", "s4", "s5", "[r1],#" bytes, "[r3],#" bytes))

ATTUNE_NARROW_TILE_ALONG(int8_along_tile, ATTUNE_INT8_NEXT, "1", ATTUNE_INT8_TWO, "1")
ATTUNE_NARROW_TILE_ALONG(bfloat16_along_tile, ATTUNE_BFLOAT16_NEXT, "4", ATTUNE_BFLOAT16_TWO, "2")
ATTUNE_NARROW_TILE_ALONG(float16_along_tile, ATTUNE_FLOAT16_NEXT, "4", ATTUNE_FLOAT16_TWO, "2")
ATTUNE_NARROW_TILES(scaled_int8_across_tile, "", ATTUNE_B_ACROSS(ATTUNE_INT8_TWO, "1") ATTUNE_SCALE_FOUR,
                    ATTUNE_ROWS_ACROSS,
                    ATTUNE_B_ROW(ATTUNE_INT8_TWO, "1", "d2", "s4", "s5") ATTUNE_SCALE_SINGLE)
ATTUNE_NARROW_TILES(bfloat16_across_tile, "", ATTUNE_B_ACROSS_NEXT(ATTUNE_BFLOAT16_NEXT),
                    ATTUNE_ROWS_ACROSS_NEXT, ATTUNE_B_ROW(ATTUNE_BFLOAT16_NEXT, "2", "d2", "s4", "s5"))
ATTUNE_NARROW_TILES(float16_across_tile, "", ATTUNE_B_ACROSS_NEXT(ATTUNE_FLOAT16_NEXT),
                    ATTUNE_ROWS_ACROSS_NEXT, ATTUNE_B_ROW(ATTUNE_FLOAT16_NEXT, "2", "d2", "s4", "s5"))

// The same for 4 × 4, two rows at a time; r12 is the depth.
#define ATTUNE_SMALL_ROW_OF_SUMS(c0, c1, c2, c3, a, b0, b1, b2, b3) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, "s4", "s5", "s6", "s7")
#define ATTUNE_SMALL_ROWS(load0, load1, macs0, macs1, ...) \
  load0 "\n" load1 "\n" macs0("s0", "s2", __VA_ARGS__) macs1("s1", "s3", __VA_ARGS__)
#define ATTUNE_SMALL_K(b0, b1, b2, b3, a0, a1, c0, c1, c2, c3, d0, d1, d2, d3) \
  ATTUNE_SMALL_ROW_OF_SUMS(c0, c1, c2, c3, a0, b0, b1, b2, b3)                 \
  ATTUNE_SMALL_ROW_OF_SUMS(d0, d1, d2, d3, a1, b0, b1, b2, b3)
#define ATTUNE_SMALL_TILE(name, lines_of_b, two, macs0, macs1, single, macs)                                    \
  [[gnu::naked]] inline void name() {                                                                           \
    asm("push {r7,r11,lr}\n add lr,r0,r2\n add r5,lr,r2\n add.w r2,r5,r2\n" lines_of_b                        \
        "subs r12,r12,#2\n blo 2f\n .p2align 2\n"                                                           \
        "1:\n" two ATTUNE_SMALL_ROWS("vldmia r0!,{d0}", "vldmia lr!,{d1}", macs0, macs1, "s16", "s17",      \
                                     "s18", "s19", "s20", "s21", "s22", "s23")                              \
            ATTUNE_SMALL_ROWS("vldmia r5!,{d0}", "vldmia r2!,{d1}", macs0, macs1, "s24", "s25", "s26",      \
                              "s27", "s28", "s29", "s30", "s31") "subs r12,r12,#2\n bhs 1b\n"               \
        "2: adds r12,r12,#2\n beq 3f\n" single                                                              \
        "vldr s0,[r0]\n vldr s2,[lr]\n" macs("s0", "s2", "s16", "s17", "s18", "s19", "s20", "s21", "s22",   \
                                             "s23") "vldr s0,[r5]\n vldr s2,[r2]\n" macs(                   \
            "s0", "s2", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31") "3: pop {r7,r11,pc}\n"); \
  }
#define ATTUNE_SMALL_EVEN(...) ATTUNE_SMALL_K("s8", "s10", "s12", "s14", __VA_ARGS__)
#define ATTUNE_SMALL_ODD(...) ATTUNE_SMALL_K("s9", "s11", "s13", "s15", __VA_ARGS__)
#define ATTUNE_SMALL_FIRST(...) ATTUNE_SMALL_K("s8", "s9", "s10", "s11", __VA_ARGS__)
#define ATTUNE_SMALL_SECOND(...) ATTUNE_SMALL_K("s12", "s13", "s14", "s15", __VA_ARGS__)
#define ATTUNE_SMALL_TILE_ALONG(name, next, bytes, pair)                                             \
  ATTUNE_SMALL_TILE(name, "add r8,r1,r3\n add r9,r8,r3\n add.w r3,r9,r3\n",                          \
                    next("d4", "s8", "s9", "[r1],#" bytes, "[r1],#" bytes)                           \
                        next("d5", "s10", "s11", "[r8],#" bytes, "[r8],#" bytes)                     \
                            next("d6", "s12", "s13", "[r9],#" bytes, "[r9],#" bytes)                 \
                                next("d7", "s14", "s15", "[r3],#" bytes, "[r3],#" bytes),            \
                    ATTUNE_SMALL_EVEN, ATTUNE_SMALL_ODD,                                             \
                    pair("d4", "s8", "s9", "[r1]", "[r8]") pair("d5", "s10", "s11", "[r9]", "[r3]"), \
                    ATTUNE_SMALL_FIRST)
#define ATTUNE_SMALL_ROW(next, i1, i2, i3, d0, s0, s1, d1, s2, s3) \
  next(d0, s0, s1, "[r1]", "[r1,#" i1 "]") next(d1, s2, s3, "[r1,#" i2 "]", "[r1,#" i3 "]") "add r1,r1,r3\n"
#define ATTUNE_SMALL_TILE_ACROSS(name, next, i1, i2, i3, scale_two, scale_single)                          \
  ATTUNE_SMALL_TILE(name, "",                                                                              \
                    ATTUNE_SMALL_ROW(next, i1, i2, i3, "d4", "s8", "s9", "d5", "s10", "s11")               \
                        ATTUNE_SMALL_ROW(next, i1, i2, i3, "d6", "s12", "s13", "d7", "s14", "s15")         \
                            scale_two,                                                                     \
                    ATTUNE_SMALL_FIRST, ATTUNE_SMALL_SECOND,                                               \
                    ATTUNE_SMALL_ROW(next, i1, i2, i3, "d4", "s8", "s9", "d5", "s10", "s11") scale_single, \
                    ATTUNE_SMALL_FIRST)
#define ATTUNE_SCALE_SMALL(s) \
  "vmul.f32 s8,s8," s "\n vmul.f32 s9,s9," s "\n vmul.f32 s10,s10," s "\n vmul.f32 s11,s11," s "\n"
#define ATTUNE_SCALE_SMALL_TWO \
  "vldmia r4!,{s0-s1}\n" ATTUNE_SCALE_SMALL("s0") "vmul.f32 s12,s12,s1\n vmul.f32 s13,s13,s1\n "         \
  "vmul.f32 s14,s14,s1\n vmul.f32 s15,s15,s1\n"
#define ATTUNE_SCALE_SMALL_SINGLE "vldr s0,[r4]\n" ATTUNE_SCALE_SMALL("s0")

ATTUNE_SMALL_TILE_ALONG(int8_along_small, ATTUNE_INT8_NEXT, "1", ATTUNE_INT8_TWO)
ATTUNE_SMALL_TILE_ALONG(bfloat16_along_small, ATTUNE_BFLOAT16_NEXT, "4", ATTUNE_BFLOAT16_TWO)
ATTUNE_SMALL_TILE_ALONG(float16_along_small, ATTUNE_FLOAT16_NEXT, "4", ATTUNE_FLOAT16_TWO)
ATTUNE_SMALL_TILE_ACROSS(scaled_int8_across_small, ATTUNE_INT8_NEXT, "1", "2", "3", ATTUNE_SCALE_SMALL_TWO,
                         ATTUNE_SCALE_SMALL_SINGLE)
ATTUNE_SMALL_TILE_ACROSS(bfloat16_across_small, ATTUNE_BFLOAT16_NEXT, "2", "4", "6", "", "")
ATTUNE_SMALL_TILE_ACROSS(float16_across_small, ATTUNE_FLOAT16_NEXT, "2", "4", "6", "", "")

#undef ATTUNE_SMALL_ROW_OF_SUMS
#undef ATTUNE_SMALL_ROWS
#undef ATTUNE_SMALL_K
#undef ATTUNE_SMALL_EVEN
#undef ATTUNE_SMALL_ODD
#undef ATTUNE_SMALL_FIRST
#undef ATTUNE_SMALL_SECOND
#undef ATTUNE_SMALL_TILE
#undef ATTUNE_SMALL_TILE_ALONG
#undef ATTUNE_SMALL_ROW
#undef ATTUNE_SMALL_TILE_ACROSS
#undef ATTUNE_SCALE_SMALL
#undef ATTUNE_SCALE_SMALL_TWO
#undef ATTUNE_SCALE_SMALL_SINGLE
#undef ATTUNE_ROW
#undef ATTUNE_ROWS
#undef ATTUNE_K_OF_ROWS
#undef ATTUNE_ROWS_ALONG
#undef ATTUNE_ROWS_ACROSS
#undef ATTUNE_ROWS_ACROSS_NEXT
#undef ATTUNE_ROWS_SINGLE
#undef ATTUNE_ALL_ROWS
#undef ATTUNE_B_ALONG
#undef ATTUNE_B_ROW
#undef ATTUNE_B_ACROSS
#undef ATTUNE_B_ACROSS_NEXT
#undef ATTUNE_SCALE_FOUR
#undef ATTUNE_SCALE_SINGLE
#undef ATTUNE_NARROW_TILE
#undef ATTUNE_NARROW_TILES
#undef ATTUNE_NARROW_TILE_ALONG

ATTUNE_NARROW_BLOCKS(kTile, tile);
ATTUNE_NARROW_BLOCKS(kTileAndRest, tile_and_rest);
ATTUNE_NARROW_BLOCKS(kSmallTile, small);

// Rows in blocks of eight: all of exactly eight rows. On M33 and M55, where memory takes as long as
// multiplying, also whole eights of more rows, if B has no scales and is therefore dequantized fast enough.
// For size, panels take all rows.
constexpr int eight_rows(int rows, [[maybe_unused]] bool scaled) {
  if (ATTUNE_FOR_SIZE) return 0;
#if __ARM_ARCH >= 8
  if (!scaled || rows == 2 * kQuantizedRows) return rows / kQuantizedRows * kQuantizedRows;
#endif
  return rows == kQuantizedRows ? rows : 0;
}
// Products with rows and columns in whole blocks. B's strides count elements.
template <class B, bool kSmall, GemmShape shape>
constexpr TileGrid quantized_grid() {
  constexpr int kBytes = static_cast<int>(sizeof(*elements_of(B{})));
  constexpr QuantizedShape kLarge =
      shape.depth % 4 == 0 ? QuantizedShape::kTile : QuantizedShape::kTileAndRest;
  constexpr QuantizedBlocks kBlocks = kQuantizedBlocks < B, kSmall ? QuantizedShape::kSmallTile : kLarge > ;
  constexpr bool kAlong = shape.b_row == 1 && kBlocks.along != nullptr;
  constexpr int kBlockRows = kSmall ? kTileSide : kQuantizedRows,
                kBlockCols = kSmall ? kTileSide : kQuantizedCols;
  return {.a_stride = 4 * shape.a_row,
          .b_stride = kBytes * (kAlong ? shape.b_col : shape.b_row),
          .pairs = kSmall ? shape.depth : shape.depth - 4,
          .tile = kAlong ? kBlocks.along : kBlocks.across,
          .c_stride = 4 * shape.c_row,
          .a_step = 4 * kBlockRows * shape.a_row,
          .b_step = kBytes * kBlockCols * shape.b_col,
          .rows = shape.rows / kBlockRows,
          .cols = shape.cols};
}
template <class B, bool kSmall, GemmShape shape>
inline constexpr TileGrid kQuantizedGrid = quantized_grid<B, kSmall, shape>();

/// C = epilogue(A·B) over a grid of blocks. `scale` has the scales of B's rows, if any.
template <bool kSmall, class Epilogue>
[[gnu::noinline]] void quantized_tiles_product(const float* a, const void* b, float* c, const TileGrid& grid,
                                               const float* scale, Epilogue epilogue) {
  using Row = std::conditional_t<kSmall, TileRow, TilePair>;
  int row = grid.rows;
  do {
    const char* b_tile = static_cast<const char*>(b);
    float* c_row = c;
    int col = 0;
    do {
      register const float* r0 asm("r0") = a;
      register const char* r1 asm("r1") = b_tile;
      register const float* r4 asm("r4") = scale;
      register const float* r5 asm("r5") = kNoSums;
      register float s16 asm("s16"), s17 asm("s17"), s18 asm("s18"), s19 asm("s19");
      register float s20 asm("s20"), s21 asm("s21"), s22 asm("s22"), s23 asm("s23");
      register float s24 asm("s24"), s25 asm("s25"), s26 asm("s26"), s27 asm("s27");
      register float s28 asm("s28"), s29 asm("s29"), s30 asm("s30"), s31 asm("s31");
      asm volatile("vldmia r5,{s16-s31}\n ldmia %[grid],{r2,r3,r12,lr}\n blx lr"
                   : "+r"(r0), "+r"(r1), "+r"(r4), "+r"(r5), "=t"(s16), "=t"(s17), "=t"(s18), "=t"(s19),
                     "=t"(s20), "=t"(s21), "=t"(s22), "=t"(s23), "=t"(s24), "=t"(s25), "=t"(s26), "=t"(s27),
                     "=t"(s28), "=t"(s29), "=t"(s30), "=t"(s31)
                   : [grid] "r"(&grid)
                   : "r2", "r3", "r8", "r9", "r12", "lr", "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5",
                     "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15");
      const Row scales = column_scales<Row>(epilogue, col);
      const float q0 = scales.lane[0], q1 = scales.lane[1];  // an aggregate would be in memory
      const float q2 = scales.lane[kLanes<Row> - 2], q3 = scales.lane[kLanes<Row> - 1];
      const auto& finish = behind_scales(epilogue);
      const int stride = grid.c_stride;
      float* to = c_row;
#define ATTUNE_FINISH_PAIR(c0, c1)                                                                 \
  {                                                                                                \
    const TilePair sum =                                                                           \
        kIsSpecialization<Epilogue, ScaleColumns> ? TilePair{c0 * q0, c1 * q1} : TilePair{c0, c1}; \
    const TilePair done = finish(sum, static_cast<const float*>(to), col);                         \
    c0 = done.lane[0], c1 = done.lane[1];                                                          \
    asm volatile("vstmia %0,{" #c0 "-" #c1 "}\n add %0,%0,%1"                                      \
                 : "+r"(to)                                                                        \
                 : "r"(stride), "t"(c0), "t"(c1)                                                   \
                 : "memory");                                                                      \
  }
      if constexpr (kSmall) {
        ATTUNE_FINISH_ROW(to, s16, s17, s18, s19)
        ATTUNE_FINISH_ROW(to, s20, s21, s22, s23)
        ATTUNE_FINISH_ROW(to, s24, s25, s26, s27)
        ATTUNE_FINISH_ROW(to, s28, s29, s30, s31)
      } else {
        ATTUNE_FINISH_PAIR(s16, s17)
        ATTUNE_FINISH_PAIR(s18, s19)
        ATTUNE_FINISH_PAIR(s20, s21)
        ATTUNE_FINISH_PAIR(s22, s23)
        ATTUNE_FINISH_PAIR(s24, s25)
        ATTUNE_FINISH_PAIR(s26, s27)
        ATTUNE_FINISH_PAIR(s28, s29)
        ATTUNE_FINISH_PAIR(s30, s31)
      }
#undef ATTUNE_FINISH_PAIR
      b_tile += grid.b_step;
      c_row += kLanes<Row>;
      col += kLanes<Row>;
    } while (col < grid.cols);
    a = bytes_after(a, grid.a_step);
    c = bytes_after(c, kQuantizedRows * grid.c_stride);
  } while (--row != 0);
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#endif
