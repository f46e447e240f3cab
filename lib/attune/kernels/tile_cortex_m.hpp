// A product's 4×4 register block on the single-precision FPU of a Cortex-M (M4F, M7, M33, M55 without
// Helium), in assembly.
//
// Sixteen sums stand in s16 … s31, two columns of A and two rows of B in s0 … s15, so all 32 registers work
// and two k take 32 multiply-accumulates and ten other instructions. Compilers do not find the multiple
// loads. Every sum starts from +0 and takes its terms in rising k, with one rounding or two a term: the bits
// of the portable block.
//
// Where a term is a vmul and a vadd (terms_cortex_m.hpp), four registers hold products, and half of B or A is
// loaded at a time. An M4 loads single words then, one behind the other: sixteen take 18 cycles instead
// of 22. Their addresses move on once in four k where A is along k: two would take as long as multiple loads
// do.
//
// The code is small: the inner loop exists once for each pair of layouts, the loops around it once for each
// epilogue, and once more for shapes that fill no whole tiles, with strides at run time. A shape costs only
// its grid, in flash.
#pragma once

#include <bit>

#include <attune/kernels/arithmetic.hpp>
#include <attune/kernels/epilogues.hpp>
#include <attune/kernels/registers_cortex_m.hpp>
#include <attune/kernels/terms_cortex_m.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace attune::inline ATTUNE_ARITHMETIC::kernels {
namespace detail {

inline constexpr int kTileSide = 4;

// The sums of a tile: 4×4, or 2×8 (wide_tile_cortex_m.hpp).
enum class TileShape { kSquare, kWide };
constexpr int tile_rows(TileShape shape) { return shape == TileShape::kSquare ? kTileSide : 2; }
constexpr int tile_cols(TileShape shape) { return shape == TileShape::kSquare ? kTileSide : 8; }

// Four scalars of a row of C, a packet to epilogues.
struct TileRow {
  float lane[kTileSide];

  ATTUNE_INLINE friend TileRow add(const TileRow& a, const TileRow& b) {
    return {a.lane[0] + b.lane[0], a.lane[1] + b.lane[1], a.lane[2] + b.lane[2], a.lane[3] + b.lane[3]};
  }
  ATTUNE_INLINE friend TileRow multiply(const TileRow& a, const TileRow& b) {
    return {a.lane[0] * b.lane[0], a.lane[1] * b.lane[1], a.lane[2] * b.lane[2], a.lane[3] * b.lane[3]};
  }
};

}  // namespace detail

template <>
struct PacketTraits<detail::TileRow> {
  using Scalar = float;
  using Half = detail::TileRow;
  static constexpr int kLanes = detail::kTileSide;

  // Volatile keeps the load of a row beside its use, where these registers are free.
  ATTUNE_INLINE static detail::TileRow load(const float* from) {
    register float s0 asm("s0");
    register float s1 asm("s1");
    register float s2 asm("s2");
    register float s3 asm("s3");
    asm volatile("vldmia %4,{s0-s3}"
                 : "=t"(s0), "=t"(s1), "=t"(s2), "=t"(s3)
                 : "r"(from), "m"(*reinterpret_cast<const float(*)[kLanes]>(from)));
    return {s0, s1, s2, s3};
  }
  ATTUNE_INLINE static void store(float* to, const detail::TileRow& value) {
    register float s0 asm("s0") = value.lane[0];
    register float s1 asm("s1") = value.lane[1];
    register float s2 asm("s2") = value.lane[2];
    register float s3 asm("s3") = value.lane[3];
    asm volatile("vstmia %1,{s0-s3}"
                 : "=m"(*reinterpret_cast<float(*)[kLanes]>(to))
                 : "r"(to), "t"(s0), "t"(s1), "t"(s2), "t"(s3));
  }
  ATTUNE_INLINE static detail::TileRow broadcast(float value) { return {value, value, value, value}; }
};

namespace detail {

// One k of the tile, and two k of its columns c and c + 1.
#define ATTUNE_MACS_ROW(c0, c1, c2, c3, a, b0, b1, b2, b3, ...) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, __VA_ARGS__)
#define ATTUNE_MACS_TILE(a0, a1, a2, a3, ...)                  \
  ATTUNE_MACS_ROW("s16", "s17", "s18", "s19", a0, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s20", "s21", "s22", "s23", a1, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s24", "s25", "s26", "s27", a2, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s28", "s29", "s30", "s31", a3, __VA_ARGS__)
#define ATTUNE_MACS_COLUMNS(c0, d0, c1, d1, c2, d2, c3, d3)                                                 \
  ATTUNE_MACS(c0, "s0", "s8", d0, "s0", "s10", c1, "s2", "s8", d1, "s2", "s10", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c2, "s4", "s8", d2, "s4", "s10", c3, "s6", "s8", d3, "s6", "s10", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c0, "s1", "s9", d0, "s1", "s11", c1, "s3", "s9", d1, "s3", "s11", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c2, "s5", "s9", d2, "s5", "s11", c3, "s7", "s9", d3, "s7", "s11", "s12", "s13", "s14", "s15")

// An operand is stored either along k, each of its four lines with two k in one register pair, or across k,
// four scalars of one k in a row.
#define ATTUNE_LINES_OF_A "add r4,r0,r2\n add r5,r4,r2\n add.w r2,r5,r2\n"
#define ATTUNE_LINES_OF_B "add r8,r1,r3\n add r9,r8,r3\n add.w r3,r9,r3\n"
#define ATTUNE_A_ALONG "vldmia r0!,{d0}\n vldmia r4!,{d1}\n vldmia r5!,{d2}\n vldmia r2!,{d3}\n"
#define ATTUNE_B_ALONG "vldmia r1!,{d4}\n vldmia r8!,{d5}\n vldmia r9!,{d6}\n vldmia r3!,{d7}\n"
#define ATTUNE_A_ACROSS(to) "vldmia r0,{" to "}\n add r0,r0,r2\n"
#define ATTUNE_B_ACROSS(to) "vldmia r1,{" to "}\n add r1,r1,r3\n"
#define ATTUNE_A_ALONG_LAST "vldr s0,[r0]\n vldr s2,[r4]\n vldr s4,[r5]\n vldr s6,[r2]\n"
#define ATTUNE_B_ALONG_LAST(b0, b1, b2, b3) \
  "vldr " b0 ",[r1]\n vldr " b1 ",[r8]\n vldr " b2 ",[r9]\n vldr " b3 ",[r3]\n"
#define ATTUNE_A_ACROSS_LAST "vldmia r0,{s0-s3}\n"
#define ATTUNE_B_ACROSS_LAST "vldmia r1,{s8-s11}\n"

// Adds to the sums of one tile, in s16 … s31. In: r0 A, r1 B, r2 and r3 their strides in bytes, r12 how many
// pairs of k, none where there is one k. Changes all of them, r4, r5, r8, r9 and s0 … s15; no stack. The
// convention is not C++'s: tiles_product calls it. A branch to 32 bits across two words would take a cycle
// more.
#define ATTUNE_TILE_FUNCTION(name, lines, begin, pair_of_k, last)                            \
  [[gnu::naked]] inline void name() {                                                        \
    asm(lines begin ".p2align 2\n1: subs r12,r12,#1\n" pair_of_k "bne 1b\n" last "bx lr\n"); \
  }
#define ATTUNE_TILE_FUNCTIONS(name, lines, pair_of_k, last) \
  ATTUNE_TILE_FUNCTION(name, lines, "", pair_of_k, "")      \
  ATTUNE_TILE_FUNCTION(name##_odd, lines, "cmp r12,#0\n beq 2f\n", pair_of_k, "2:\n" last)

#if ATTUNE_SPLIT_VMLA
// Products in s12 … s15, or s4 … s7 where B is along k.
#define ATTUNE_MACS_K(a0, a1, a2, a3) \
  ATTUNE_MACS_TILE(a0, a1, a2, a3, "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15")
#define ATTUNE_MACS_TT(b0, b1, b2, b3) \
  ATTUNE_MACS_TILE("s0", "s1", "s2", "s3", b0, b1, b2, b3, "s4", "s5", "s6", "s7")
#if ATTUNE_LOADS_PIPELINE
// Loads of one word, one behind the other. `ahead` moves lines on. All of them stand at whole words, as M4
// pipelines 32-bit loads: adds of 16 bits come in pairs.
#define ATTUNE_TWO(to0, to1, line, at0, at1) \
  "vldr " to0 ",[" line ",#" at0 "]\n vldr " to1 ",[" line ",#" at1 "]\n"
#define ATTUNE_FOUR(from, s0, s1, s2, s3) \
  ATTUNE_TWO(s0, s1, from, "0", "4") ATTUNE_TWO(s2, s3, from, "8", "12")
#define ATTUNE_SERIES_OF_A(k0, k1)     \
  ATTUNE_TWO("s0", "s1", "r0", k0, k1) \
  ATTUNE_TWO("s2", "s3", "r4", k0, k1) \
  ATTUNE_TWO("s4", "s5", "r5", k0, k1) \
  ATTUNE_TWO("s6", "s7", "r2", k0, k1)
#define ATTUNE_AHEAD_OF_A "adds r0,#16\n adds r4,#16\n adds r5,#16\n adds r2,#16\n"
#define ATTUNE_SERIES_NN(k0, k1, ahead)                                            \
  ATTUNE_SERIES_OF_A(k0, k1)                                                       \
  ATTUNE_FOUR("r1", "s8", "s9", "s10", "s11")                                      \
  "add r1,r1,r3\n" ATTUNE_MACS_K("s0", "s2", "s4", "s6") ATTUNE_B_ACROSS("s8-s11") \
      ahead ATTUNE_MACS_K("s1", "s3", "s5", "s7")
#define ATTUNE_SERIES_NT(k0, k1, ahead)                                       \
  ATTUNE_SERIES_OF_A(k0, k1)                                                  \
  ATTUNE_TWO("s8", "s9", "r1", k0, k1)                                        \
  ATTUNE_TWO("s10", "s11", "r8", k0, k1)                                      \
  ATTUNE_MACS_COLUMNS("s16", "s17", "s20", "s21", "s24", "s25", "s28", "s29") \
  ATTUNE_TWO("s8", "s9", "r9", k0, k1)                                        \
  ATTUNE_TWO("s10", "s11", "r3", k0, k1)                                      \
  ahead ATTUNE_MACS_COLUMNS("s18", "s19", "s22", "s23", "s26", "s27", "s30", "s31")
#define ATTUNE_SERIES_TN                      \
  ATTUNE_FOUR("r0", "s0", "s1", "s2", "s3")   \
  ATTUNE_FOUR("r1", "s8", "s9", "s10", "s11") \
  "add r0,r0,r2\n add r1,r1,r3\n" ATTUNE_MACS_K("s0", "s1", "s2", "s3")
#endif
#define ATTUNE_K_NN(a0, a1, a2, a3) ATTUNE_B_ACROSS("s8-s11") ATTUNE_MACS_K(a0, a1, a2, a3)
#define ATTUNE_K_TN ATTUNE_A_ACROSS("s0-s3") ATTUNE_K_NN("s0", "s1", "s2", "s3")
#define ATTUNE_PAIR_NN ATTUNE_A_ALONG ATTUNE_K_NN("s0", "s2", "s4", "s6") ATTUNE_K_NN("s1", "s3", "s5", "s7")
#define ATTUNE_PAIR_NT                                                                                    \
  ATTUNE_A_ALONG "vldmia r1!,{d4}\n vldmia r8!,{d5}\n" ATTUNE_MACS_COLUMNS(                               \
      "s16", "s17", "s20", "s21", "s24", "s25", "s28",                                                    \
      "s29") "vldmia r9!,{d4}\n vldmia r3!,{d5}\n" ATTUNE_MACS_COLUMNS("s18", "s19", "s22", "s23", "s26", \
                                                                       "s27", "s30", "s31")
#if ATTUNE_LOADS_PIPELINE
#define ATTUNE_PAIR_TN ATTUNE_SERIES_TN ATTUNE_SERIES_TN
#else
#define ATTUNE_PAIR_TN ATTUNE_K_TN ATTUNE_K_TN
#endif
#define ATTUNE_PAIR_TT                                                                                       \
  ATTUNE_B_ALONG ATTUNE_A_ACROSS("s0-s3") ATTUNE_MACS_TT("s8", "s10", "s12", "s14") ATTUNE_A_ACROSS("s0-s3") \
      ATTUNE_MACS_TT("s9", "s11", "s13", "s15")
#else
#define ATTUNE_MACS_K(a0, a1, a2, a3) ATTUNE_MACS_TILE(a0, a1, a2, a3, "s8", "s9", "s10", "s11", , , , )
#define ATTUNE_MACS_TT(b0, b1, b2, b3) ATTUNE_MACS_TILE("s0", "s1", "s2", "s3", b0, b1, b2, b3, , , , )
#define ATTUNE_PAIR_NN                                                                                      \
  ATTUNE_A_ALONG ATTUNE_B_ACROSS("s8-s11") ATTUNE_B_ACROSS("s12-s15") ATTUNE_MACS_K("s0", "s2", "s4", "s6") \
      ATTUNE_MACS_TILE("s1", "s3", "s5", "s7", "s12", "s13", "s14", "s15", , , , )
#define ATTUNE_PAIR_NT                                                                                      \
  ATTUNE_A_ALONG ATTUNE_B_ALONG ATTUNE_MACS_TILE("s0", "s2", "s4", "s6", "s8", "s10", "s12", "s14", , , , ) \
      ATTUNE_MACS_TILE("s1", "s3", "s5", "s7", "s9", "s11", "s13", "s15", , , , )
#define ATTUNE_PAIR_TN                  \
  ATTUNE_A_ACROSS("s0-s3")              \
  ATTUNE_A_ACROSS("s4-s7")              \
  ATTUNE_B_ACROSS("s8-s11")             \
  ATTUNE_B_ACROSS("s12-s15")            \
  ATTUNE_MACS_K("s0", "s1", "s2", "s3") \
  ATTUNE_MACS_TILE("s4", "s5", "s6", "s7", "s12", "s13", "s14", "s15", , , , )
#define ATTUNE_PAIR_TT                                     \
  ATTUNE_A_ACROSS("s0-s3")                                 \
  ATTUNE_A_ACROSS("s4-s7")                                 \
  ATTUNE_B_ALONG ATTUNE_MACS_TT("s8", "s10", "s12", "s14") \
      ATTUNE_MACS_TILE("s4", "s5", "s6", "s7", "s9", "s11", "s13", "s15", , , , )
#endif

ATTUNE_TILE_FUNCTIONS(tile_nn, ATTUNE_LINES_OF_A, ATTUNE_PAIR_NN,
                      ATTUNE_A_ALONG_LAST ATTUNE_B_ACROSS_LAST ATTUNE_MACS_K("s0", "s2", "s4", "s6"))
ATTUNE_TILE_FUNCTIONS(tile_nt, ATTUNE_LINES_OF_A ATTUNE_LINES_OF_B, ATTUNE_PAIR_NT,
                      ATTUNE_A_ALONG_LAST ATTUNE_B_ALONG_LAST("s8", "s9", "s10", "s11")
                          ATTUNE_MACS_K("s0", "s2", "s4", "s6"))
ATTUNE_TILE_FUNCTIONS(tile_tn, , ATTUNE_PAIR_TN,
                      ATTUNE_A_ACROSS_LAST ATTUNE_B_ACROSS_LAST ATTUNE_MACS_K("s0", "s1", "s2", "s3"))
ATTUNE_TILE_FUNCTIONS(tile_tt, ATTUNE_LINES_OF_B, ATTUNE_PAIR_TT,
                      ATTUNE_A_ACROSS_LAST ATTUNE_B_ALONG_LAST("s8", "s10", "s12", "s14")
                          ATTUNE_MACS_TT("s8", "s10", "s12", "s14"))

#if ATTUNE_LOADS_PIPELINE
// As ATTUNE_TILE_FUNCTION, but r12 is how many fours of k.
#define ATTUNE_FOURS_FUNCTION(name, lines, two_k, ahead)                     \
  [[gnu::naked]] inline void name() {                                        \
    asm(lines ".p2align 2\n1: " two_k("0", "4", )                            \
            two_k("8", "12", ahead "subs r12,r12,#1\n") "bne 1b\n bx lr\n"); \
  }
ATTUNE_FOURS_FUNCTION(tile_nn_fours, ATTUNE_LINES_OF_A, ATTUNE_SERIES_NN, ATTUNE_AHEAD_OF_A)
ATTUNE_FOURS_FUNCTION(tile_nt_fours, ATTUNE_LINES_OF_A ATTUNE_LINES_OF_B, ATTUNE_SERIES_NT,
                      ATTUNE_AHEAD_OF_A "adds r1,#16\n add r8,r8,#16\n add r9,r9,#16\n adds r3,#16\n")
#undef ATTUNE_TWO
#undef ATTUNE_FOUR
#undef ATTUNE_SERIES_OF_A
#undef ATTUNE_SERIES_NN
#undef ATTUNE_SERIES_NT
#undef ATTUNE_SERIES_TN
#undef ATTUNE_AHEAD_OF_A
#undef ATTUNE_FOURS_FUNCTION
#endif

#undef ATTUNE_MACS_ROW
#undef ATTUNE_MACS_TILE
#undef ATTUNE_MACS_COLUMNS
#undef ATTUNE_MACS_K
#undef ATTUNE_MACS_TT
#undef ATTUNE_K_NN
#undef ATTUNE_K_TN
#undef ATTUNE_PAIR_NN
#undef ATTUNE_PAIR_NT
#undef ATTUNE_PAIR_TN
#undef ATTUNE_PAIR_TT
#undef ATTUNE_LINES_OF_A
#undef ATTUNE_LINES_OF_B
#undef ATTUNE_A_ALONG
#undef ATTUNE_B_ALONG
#undef ATTUNE_A_ACROSS
#undef ATTUNE_B_ACROSS
#undef ATTUNE_A_ALONG_LAST
#undef ATTUNE_B_ALONG_LAST
#undef ATTUNE_A_ACROSS_LAST
#undef ATTUNE_B_ACROSS_LAST
#undef ATTUNE_TILE_FUNCTION
#undef ATTUNE_TILE_FUNCTIONS

// Products of whole tiles. Strides in bytes: of A and B the one that is not a scalar's, and the step from
// tile to tile. The first four words are in the order in which tiles_product loads them.
struct TileGrid {
  int a_stride, b_stride;
  int pairs;
  void (*tile)();
  int c_stride;
  int a_step, b_step;
  short rows, cols;  // tiles one below the other; columns in whole tiles
};

// The same where rows or columns are left that fill no tile: the last one begins earlier, by as many of them
// as another has computed.
struct RaggedGrid : TileGrid {
  short rows_again, cols_again;
};

template <TileShape shape, int kRows, int kCols>
consteval auto with_rests(const TileGrid& grid) {
  constexpr int kRowsAgain = -kRows & (tile_rows(shape) - 1), kColsAgain = -kCols & (tile_cols(shape) - 1);
  if constexpr (kRowsAgain == 0 && kColsAgain == 0) {
    return grid;
  } else {
    return RaggedGrid{grid, kRowsAgain, kColsAgain};
  }
}

// What of a product is computed in tiles: a row of four and a single column are left to the portable block.
struct TiledExtents {
  int rows, cols;
};
constexpr TiledExtents tiled(TileShape shape, int rows, int cols) {
  const int rows_left = rows % tile_rows(shape), cols_left = cols % tile_cols(shape);
  return {2 * rows_left < tile_rows(shape) ? rows - rows_left : rows, cols_left == 1 ? cols - 1 : cols};
}

constexpr bool fits_tile(int rows, int cols, int depth, int a_row, int a_col, int b_row, int b_col) {
  return rows >= kTileSide && cols >= kTileSide && depth >= 2 && (a_row == 1 || a_col == 1) &&
         (b_row == 1 || b_col == 1);
}

template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow>
consteval TileGrid tile_grid() {
  constexpr bool kAAlong = kACol == 1, kBAlong = kBCol != 1, kOdd = kDepth % 2 != 0;
  return {.a_stride = 4 * (kAAlong ? kARow : kACol),
          .b_stride = 4 * (kBAlong ? kBCol : kBRow),
          .pairs = kDepth / 2,
          .tile = kAAlong ? (kBAlong ? (kOdd ? tile_nt_odd : tile_nt) : (kOdd ? tile_nn_odd : tile_nn))
                          : (kBAlong ? (kOdd ? tile_tt_odd : tile_tt) : (kOdd ? tile_tn_odd : tile_tn)),
          .c_stride = 4 * kCRow,
          .a_step = 4 * kTileSide * kARow,
          .b_step = 4 * kTileSide * kBCol,
          .rows = kRows / kTileSide,
          .cols = kCols / kTileSide * kTileSide};
}

// The same with four k at a time, where there is a function for it.
consteval TileGrid in_fours(TileGrid grid) {
#if ATTUNE_LOADS_PIPELINE
  if (grid.pairs % 2 == 0 && (grid.tile == tile_nn || grid.tile == tile_nt)) {
    grid.tile = grid.tile == tile_nn ? tile_nn_fours : tile_nt_fours;
    grid.pairs /= 2;
  }
#endif
  return grid;
}

template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow>
inline constexpr auto kTileGrid = with_rests<TileShape::kSquare, kRows, kCols>(
    in_fours(tile_grid<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>()));

ATTUNE_INLINE const float* bytes_after(const float* from, int bytes) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(from) + bytes);
}
ATTUNE_INLINE float* bytes_after(float* from, int bytes) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(from) + bytes);
}

/// C = epilogue(A·B) over a grid of tiles, or, with Continue, C + A·B, term by term. An epilogue without a
/// state is not passed, so that four registers take all arguments.
template <TileShape shape, class Epilogue, class Grid, class... State>
[[gnu::noinline]] void tiles_product(const float* a, const float* b, float* c, const Grid& grid,
                                     State... state) {
  constexpr bool kRagged = std::is_same_v<Grid, RaggedGrid>;
  constexpr int kRows = tile_rows(shape), kCols = tile_cols(shape);
  const Epilogue epilogue{state...};
  int col = 0, cols_again = 0;
  do {
    const float* a_tile = a;
    float* c_row = c;
    int row = grid.rows, rows_again = 0;
    do {
      register const float* r0 asm("r0") = a_tile;
      register const float* r1 asm("r1") = b;
      register int r4 asm("r4");
      register const float* r5 asm("r5");
      register float s16 asm("s16"), s17 asm("s17"), s18 asm("s18"), s19 asm("s19");
      register float s20 asm("s20"), s21 asm("s21"), s22 asm("s22"), s23 asm("s23");
      register float s24 asm("s24"), s25 asm("s25"), s26 asm("s26"), s27 asm("s27");
      register float s28 asm("s28"), s29 asm("s29"), s30 asm("s30"), s31 asm("s31");
#define ATTUNE_CALL_TILE(begin, ...)                                                                      \
  asm volatile(begin "ldmia %[grid],{r2,r3,r12,lr}\n blx lr"                                              \
               : "+r"(r0), "+r"(r1), "=r"(r4), "=r"(r5), "=t"(s16), "=t"(s17), "=t"(s18), "=t"(s19),      \
                 "=t"(s20), "=t"(s21), "=t"(s22), "=t"(s23), "=t"(s24), "=t"(s25), "=t"(s26), "=t"(s27),  \
                 "=t"(s28), "=t"(s29), "=t"(s30), "=t"(s31)                                               \
               : [grid] "r"(&grid)__VA_OPT__(, ) __VA_ARGS__                                              \
               : "r2", "r3", "r8", "r9", "r12", "lr", "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", \
                 "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15")
      if constexpr (std::is_same_v<Epilogue, Continue>) {
        r4 = grid.c_stride;
        r5 = c_row;
        ATTUNE_CALL_TILE(
            "add r2,r5,r4\n add r3,r2,r4\n add r4,r3,r4\n vldmia r5,{s16-s19}\n vldmia r2,{s20-s23}\n "
            "vldmia r3,{s24-s27}\n vldmia r4,{s28-s31}\n",
            "r"(r4), "r"(r5));
      } else {
#if ATTUNE_WIDE_TILES && !ATTUNE_SPLIT_VMLA
        r5 = kNoSums;
        ATTUNE_CALL_TILE("vldmia r5,{s16-s31}\n", "r"(r5));
#else  // of seven instructions more, and two cycles less
        r4 = 0;
        ATTUNE_CALL_TILE(
            "vmov d8,r4,r4\n vmov d9,r4,r4\n vmov d10,r4,r4\n vmov d11,r4,r4\n vmov d12,r4,r4\n "
            "vmov d13,r4,r4\n vmov d14,r4,r4\n vmov d15,r4,r4\n",
            "r"(r4));
#endif
      }
#undef ATTUNE_CALL_TILE
      // Four sums of a row, at `ahead` columns, which are stored; c_row moves on.
#define ATTUNE_FINISH_FOUR(c0, c1, c2, c3, ahead, store, ...)                          \
  {                                                                                    \
    const TileRow sum{c0, c1, c2, c3};                                                 \
    const TileRow done = epilogue(sum, static_cast<const float*>(c_row), col + ahead); \
    c0 = done.lane[0], c1 = done.lane[1], c2 = done.lane[2], c3 = done.lane[3];        \
    asm volatile(store                                                                 \
                 : "+r"(c_row)                                                         \
                 : "t"(c0), "t"(c1), "t"(c2), "t"(c3)__VA_OPT__(, ) __VA_ARGS__        \
                 : "memory");                                                          \
  }
#define ATTUNE_FINISH_LAST(c0, c1, c2, c3, ahead) \
  ATTUNE_FINISH_FOUR(c0, c1, c2, c3, ahead, "vstmia %0,{" #c0 "-" #c3 "}\n add %0,%0,%5", "r"(step))
      // Of a tile that computes some once more, those are left alone that may not be finished twice.
      if (!kMayRepeat<Epilogue> && (rows_again | cols_again) != 0) {
        float sums[kManyRegisters];
        asm volatile("vstmia %0,{s16-s31}" : : "r"(sums), ATTUNE_REGISTERS("t") : "memory");
        for (int i = 0; i < kRows; ++i) {
          for (int j = cols_again; j < kCols && i >= rows_again; ++j) {
            c_row[j] = epilogue(sums[i * kCols + j], static_cast<const float*>(c_row + j), col + j);
          }
          c_row = bytes_after(c_row, grid.c_stride);
        }
      } else if constexpr (shape == TileShape::kSquare) {
        const int step = grid.c_stride;  // once, whatever is stored
        ATTUNE_FINISH_LAST(s16, s17, s18, s19, 0)
        ATTUNE_FINISH_LAST(s20, s21, s22, s23, 0)
        ATTUNE_FINISH_LAST(s24, s25, s26, s27, 0)
        ATTUNE_FINISH_LAST(s28, s29, s30, s31, 0)
      } else {
        const int step = grid.c_stride - 4 * kTileSide;
        ATTUNE_FINISH_FOUR(s16, s17, s18, s19, 0, "vstmia %0!,{s16-s19}")
        ATTUNE_FINISH_LAST(s20, s21, s22, s23, kTileSide)
        ATTUNE_FINISH_FOUR(s24, s25, s26, s27, 0, "vstmia %0!,{s24-s27}")
        ATTUNE_FINISH_LAST(s28, s29, s30, s31, kTileSide)
      }
#undef ATTUNE_FINISH_FOUR
#undef ATTUNE_FINISH_LAST
      a_tile = bytes_after(a_tile, grid.a_step);
      --row;
      if constexpr (kRagged) {
        if (row == 0 && rows_again == 0 && grid.rows_again != 0) {
          rows_again = grid.rows_again, row = 1;
          a_tile = bytes_after(a_tile, -rows_again * (grid.a_step >> std::countr_zero(unsigned{kRows})));
          c_row = bytes_after(c_row, -rows_again * grid.c_stride);
        }
      }
    } while (row != 0);
    b = bytes_after(b, grid.b_step);
    c += kCols;
    col += kCols;
    if constexpr (kRagged) {
      if (col == grid.cols && grid.cols_again != 0) {
        cols_again = grid.cols_again;
        b = bytes_after(b, -cols_again * (grid.b_step >> std::countr_zero(unsigned{kCols})));
        c -= cols_again;
        col -= cols_again;
      }
    }
  } while (col < grid.cols);
}

}  // namespace detail
}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels

#endif
