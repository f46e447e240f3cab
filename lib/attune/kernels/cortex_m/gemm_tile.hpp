// The 4×4 register block of products on the single-precision FPU of a Cortex-M (M4F, M7, M33, M55 without
// Helium), in assembly.
//
// Every sum starts from +0 and adds its terms in rising k, with one or two roundings a term. The bits are
// those of the portable block.
//
// The code is small. There is one inner loop (cortex_m/gemm_tile_loops.hpp) for each pair of layouts. The
// outer loops exist once for each epilogue (at -Os once for most epilogues), and once more for shapes with
// partial tiles. Strides are run-time values, so a shape costs only its grid in flash.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <attune/kernels/cortex_m/gemm_terms.hpp>
#include <attune/kernels/cortex_m/gemm_tile_loops.hpp>
#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

inline constexpr int kTileSide = 4;

// The sums of a tile: 4×4, or 2×8 (cortex_m/wide_gemm_tile.hpp).
enum class TileShape { kSquare, kWide };
constexpr int tile_rows(TileShape shape) { return shape == TileShape::kSquare ? kTileSide : 2; }
constexpr int tile_cols(TileShape shape) { return shape == TileShape::kSquare ? kTileSide : 8; }

// Four scalars of a row of C, as a packet for epilogues.
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

  // volatile keeps the load of a row next to its use, where these registers are free.
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

// The limit of a grid's rows and columns: a vocabulary of 50,257 tokens fits. The portable block computes
// larger products.
inline constexpr int kMaxExtent = (std::numeric_limits<std::uint16_t>::max)();

// Products of whole tiles. Strides in bytes: those of A and B that are not one scalar, and the steps between
// tiles. tiles_loop loads the first four words in this order.
struct TileGrid {
  int a_stride, b_stride;
  int pairs;  // of k, or the number that a longer loop takes instead
  void (*tile)();
  int c_stride;
  int a_step, b_step;
  std::uint16_t rows, cols;  // rows of tiles; columns in whole tiles
};

// The same with partial tiles. The last tile overlaps the one before by the rows or columns given here.
struct RaggedGrid : TileGrid {
  std::uint16_t rows_again, cols_again;
};

template <TileShape shape, int kRows, int kCols>
constexpr auto with_rests(const TileGrid& grid) {
  constexpr int kRowsAgain = -kRows & (tile_rows(shape) - 1), kColsAgain = -kCols & (tile_cols(shape) - 1);
  if constexpr (kRowsAgain == 0 && kColsAgain == 0) {
    return grid;
  } else {
    return RaggedGrid{grid, kRowsAgain, kColsAgain};
  }
}

// The part of a product in tiles. The portable block computes remaining rows below half a tile, and a single
// column.
struct TiledExtents {
  int rows, cols;
};
constexpr TiledExtents tiled(TileShape shape, int rows, int cols) {
  const int rows_left = rows % tile_rows(shape), cols_left = cols % tile_cols(shape);
  return {2 * rows_left < tile_rows(shape) ? rows - rows_left : rows, cols_left == 1 ? cols - 1 : cols};
}

constexpr bool fits_tile(const GemmShape& shape) {
  return shape.rows >= kTileSide && shape.rows <= kMaxExtent && shape.cols >= kTileSide &&
         shape.cols <= kMaxExtent && shape.depth >= 2 && (shape.a_row == 1 || shape.a_col == 1) &&
         (shape.b_row == 1 || shape.b_col == 1);
}

constexpr TileGrid tile_grid(const GemmShape& shape) {
  const bool a_along = shape.a_col == 1, b_along = shape.b_col != 1, odd = shape.depth % 2 != 0;
  return {.a_stride = 4 * (a_along ? shape.a_row : shape.a_col),
          .b_stride = 4 * (b_along ? shape.b_col : shape.b_row),
          .pairs = shape.depth / 2,
          .tile = a_along ? (b_along ? (odd ? tile_nt_odd : tile_nt) : (odd ? tile_nn_odd : tile_nn))
                          : (b_along ? (odd ? tile_tt_odd : tile_tt) : (odd ? tile_tn_odd : tile_tn)),
          .c_stride = 4 * shape.c_row,
          .a_step = 4 * kTileSide * shape.a_row,
          .b_step = 4 * kTileSide * shape.b_col,
          .rows = static_cast<std::uint16_t>(shape.rows / kTileSide),
          .cols = static_cast<std::uint16_t>(shape.cols / kTileSide * kTileSide)};
}

// Rows of C from which on longer loops are worth their code, and terms of a sum.
inline constexpr int kWorthLongLoops = 16, kWorthEights = 64, kWorthSixes = 32;

// The same with more than two k at a time, if there is a function for it.
constexpr TileGrid unrolled(TileGrid grid, [[maybe_unused]] const GemmShape& shape) {
#if ATTUNE_LOADS_PIPELINE
  const int depth = shape.depth;
  const bool eights = shape.rows >= kWorthLongLoops && depth >= kWorthEights;
  const bool sixes = shape.rows >= kWorthLongLoops && depth >= kWorthSixes;
  const auto use = [&](void (*tile)(), int count) { grid.tile = tile, grid.pairs = count; };
  if (grid.tile == tile_nn || grid.tile == tile_nn_odd) {
    if (eights) {
      use(depth % 8 == 0 ? tile_nn_eights : tile_nn_eights_rest, depth - 8);
    } else if (depth >= 4) {
      use(depth % 4 == 0 ? tile_nn_fours : tile_nn_fours_rest, depth - 4);
    }
  } else if (grid.tile == tile_nt && depth % 4 == 0) {
    if (eights && depth % 8 == 0) {
      use(tile_nt_eights, depth - 8);
    } else {
      use(tile_nt_fours, depth - 4);
    }
  } else if (grid.tile == tile_tn || grid.tile == tile_tn_odd) {
    if (sixes) {
      use(tile_tn_sixes, (depth / 3 - 1) * 4 + depth % 3);
    } else {
      use(tile_tn_threes, (depth - 1) / 3 * 4 + (2 - (depth - 1) % 3));
    }
  }
#endif
  return grid;
}

template <GemmShape shape>
inline constexpr auto kTileGrid =
    with_rests<TileShape::kSquare, shape.rows, shape.cols>(unrolled(tile_grid(shape), shape));

ATTUNE_INLINE const float* bytes_after(const float* from, int bytes) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(from) + bytes);
}
ATTUNE_INLINE float* bytes_after(float* from, int bytes) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(from) + bytes);
}

// At -Os the epilogue of all products that add a bias, C or nothing, so that they share their loops.
struct AnyAddend {
  static constexpr std::uintptr_t kNothing = 0, kC = 1;
  std::uintptr_t bias;  // or one of these
};

// A stateless epilogue is not passed, so that all arguments fit into four registers.
template <TileShape shape, class Epilogue, class Grid, class... State>
[[gnu::noinline]] void tiles_loop(const float* a, const float* b, float* c, const Grid& grid,
                                  State... state) {
  constexpr bool kRagged = std::is_same_v<Grid, RaggedGrid>;
  constexpr int kRows = tile_rows(shape), kCols = tile_cols(shape);
  constexpr bool kAnyAddend = std::is_same_v<Epilogue, AnyAddend>;
  constexpr bool kBias = std::is_same_v<Epilogue, AddBias<float>>;  // advances with the columns
  Epilogue epilogue{state...};
  int left = grid.cols, cols_again = 0;  // columns of this tile and the next ones
  const auto finished = [&]<class P>(const P& sum, const float* at, int ahead) ATTUNE_INLINE_LAMBDA {
    if constexpr (kAnyAddend) {
      return sum;
    } else {
      return epilogue(sum, at, kBias ? ahead : grid.cols - left + ahead);
    }
  };
  const auto bias_at = [&]([[maybe_unused]] int ahead) ATTUNE_INLINE_LAMBDA {
    if constexpr (kBias) {
      return load<TileRow>(epilogue.bias + ahead);
    } else {
      return TileRow{};
    }
  };
  // The same for four sums of a row; all rows of a tile share the registers of their bias.
  const auto finished_row = [&](const TileRow& sum, const float* at, int ahead,
                                [[maybe_unused]] const TileRow* bias) ATTUNE_INLINE_LAMBDA {
    if constexpr (kBias) {
      return add(sum, bias[ahead / kTileSide]);
    } else {
      return finished(sum, at, ahead);
    }
  };
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
#else  // seven instructions more, two cycles less
        r4 = 0;
        ATTUNE_CALL_TILE(
            "vmov d8,r4,r4\n vmov d9,r4,r4\n vmov d10,r4,r4\n vmov d11,r4,r4\n vmov d12,r4,r4\n "
            "vmov d13,r4,r4\n vmov d14,r4,r4\n vmov d15,r4,r4\n",
            "r"(r4));
#endif
      }
#undef ATTUNE_CALL_TILE
      if constexpr (kBias) asm volatile("" : "+r"(epilogue.bias));  // nothing derived from it is kept
      if constexpr (kAnyAddend) {
        if (epilogue.bias != AnyAddend::kNothing) {
          const bool to_c = epilogue.bias == AnyAddend::kC;
          const float* from = to_c ? c_row : reinterpret_cast<const float*>(epilogue.bias);
          const int stride = to_c ? grid.c_stride : 0;
#define ATTUNE_ADD_FOUR(c0, c1, c2, c3)                                                                 \
  asm volatile(                                                                                         \
      "vldmia %0,{s0-s3}\n add %0,%0,%5\n vadd.f32 %1,%1,s0\n vadd.f32 %2,%2,s1\n vadd.f32 %3,%3,s2\n " \
      "vadd.f32 %4,%4,s3"                                                                               \
      : "+r"(from), "+t"(c0), "+t"(c1), "+t"(c2), "+t"(c3)                                              \
      : "r"(stride)                                                                                     \
      : "memory", "s0", "s1", "s2", "s3")
          ATTUNE_ADD_FOUR(s16, s17, s18, s19);
          ATTUNE_ADD_FOUR(s20, s21, s22, s23);
          ATTUNE_ADD_FOUR(s24, s25, s26, s27);
          ATTUNE_ADD_FOUR(s28, s29, s30, s31);
#undef ATTUNE_ADD_FOUR
        }
      }
      // Applies the epilogue to four sums of a row at column `ahead`, stores them, and advances c_row.
#define ATTUNE_FINISH_FOUR(c0, c1, c2, c3, ahead, store, ...)                   \
  {                                                                             \
    const TileRow sum{c0, c1, c2, c3};                                          \
    const TileRow done = finished_row(sum, c_row, ahead, bias);                 \
    c0 = done.lane[0], c1 = done.lane[1], c2 = done.lane[2], c3 = done.lane[3]; \
    asm volatile(store                                                          \
                 : "+r"(c_row)                                                  \
                 : "t"(c0), "t"(c1), "t"(c2), "t"(c3)__VA_OPT__(, ) __VA_ARGS__ \
                 : "memory");                                                   \
  }
#define ATTUNE_FINISH_LAST(c0, c1, c2, c3, ahead) \
  ATTUNE_FINISH_FOUR(c0, c1, c2, c3, ahead, "vstmia %0,{" #c0 "-" #c3 "}\n add %0,%0,%5", "r"(step))
      // A tile that overlaps another one skips sums that must not be finished twice.
      if (!kMayRepeat<Epilogue> && (rows_again | cols_again) != 0) {
        float sums[kManyRegisters];
        asm volatile("vstmia %0,{s16-s31}" : : "r"(sums), ATTUNE_REGISTERS("t") : "memory");
        for (int i = 0; i < kRows; ++i) {
          for (int j = cols_again; j < kCols && i >= rows_again; ++j) {
            c_row[j] = finished(sums[i * kCols + j], c_row + j, j);
          }
          c_row = bytes_after(c_row, grid.c_stride);
        }
      } else if constexpr (shape == TileShape::kSquare) {
        const TileRow bias[] = {bias_at(0)};
        const int step = grid.c_stride;  // loaded once
        ATTUNE_FINISH_LAST(s16, s17, s18, s19, 0)
        ATTUNE_FINISH_LAST(s20, s21, s22, s23, 0)
        ATTUNE_FINISH_LAST(s24, s25, s26, s27, 0)
        ATTUNE_FINISH_LAST(s28, s29, s30, s31, 0)
      } else {
        const TileRow bias[] = {bias_at(0), bias_at(kTileSide)};
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
    left -= kCols;
    if constexpr (kBias) epilogue.bias += kCols;
    if constexpr (kAnyAddend) {
      if (epilogue.bias > AnyAddend::kC) epilogue.bias += 4 * kCols;
    }
    if constexpr (kRagged) {
      if (left == 0 && grid.cols_again != 0) {
        left = cols_again = grid.cols_again;
        b = bytes_after(b, -cols_again * (grid.b_step >> std::countr_zero(unsigned{kCols})));
        c -= cols_again;
        if constexpr (kBias) epilogue.bias -= cols_again;
      }
    }
  } while (left > 0);
}

// x *= alpha over a grid of tiles, in place.
[[gnu::noinline]] inline void scale_tiles(float* x, const TileGrid& grid, float alpha) {
  register float s4 asm("s4") = alpha;
  int row = grid.rows * kTileSide;
  do {
    float* at = x;
    int col = grid.cols;
    do {
      asm volatile(
          "vldmia %0,{s0-s3}\n vmul.f32 s0,s0,s4\n vmul.f32 s1,s1,s4\n vmul.f32 s2,s2,s4\n "
          "vmul.f32 s3,s3,s4\n vstmia %0!,{s0-s3}"
          : "+r"(at)
          : "t"(s4)
          : "memory", "s0", "s1", "s2", "s3");
      col -= kTileSide;
    } while (col != 0);
    x = bytes_after(x, grid.c_stride);
  } while (--row != 0);
}

/// C = epilogue(A·B) over a grid of tiles; with Continue, C + A·B, term by term.
template <TileShape shape, class Epilogue, class Grid, class... State>
ATTUNE_INLINE void tiles_product(const float* a, const float* b, float* c, const Grid& grid, State... state) {
  tiles_loop<shape, Epilogue>(a, b, c, grid, state...);
}
#if ATTUNE_FOR_SIZE
template <TileShape shape, class Epilogue>
  requires(std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>)
ATTUNE_INLINE void tiles_product(const float* a, const float* b, float* c, const TileGrid& grid) {
  constexpr bool kAdds = std::is_same_v<Epilogue, Accumulate>;
  tiles_loop<shape, AnyAddend>(a, b, c, grid, AnyAddend{kAdds ? AnyAddend::kC : AnyAddend::kNothing});
}
template <TileShape shape, class Epilogue>
ATTUNE_INLINE void tiles_product(const float* a, const float* b, float* c, const TileGrid& grid,
                                 AddBias<float> added) {
  tiles_loop<shape, AnyAddend>(a, b, c, grid, AnyAddend{reinterpret_cast<std::uintptr_t>(added.bias)});
}
template <TileShape shape, class Epilogue>
ATTUNE_INLINE void tiles_product(const float* a, const float* b, float* c, const TileGrid& grid,
                                 Scale<float> scaled) {
  tiles_product<shape, Assign>(a, b, c, grid);
  scale_tiles(c, grid, scaled.alpha);
}
#endif

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#endif
