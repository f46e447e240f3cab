// Matrix products: every one in the library goes through here.
//
//   C[M, N] = epilogue(A[M, K] · B[K, N])
//
// A tile of C, some rows by some packets, stays in registers while k runs: a column of A is broadcast, a row
// of B is read in packets (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
// Operands are read where they stand and a transposed A only swaps strides; copied first are the panels of a
// transposed B, where packets need their rows contiguous, and operands whose rows lie far apart.
//
// Every element is the sum over k in rising order. Longer sums are made in blocks of kDepthBlock: each is
// summed from zero, then added to C, block after block. That order does not depend on the packet width, so a
// product has the same bits on every target.
//
// B may be of narrow elements, widened where it is read: widen.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include <attune/kernels/arithmetic.hpp>
#include <attune/kernels/blas.hpp>
#include <attune/kernels/epilogues.hpp>
#include <attune/kernels/few_rows_cortex_m.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/prefetch.hpp>
#include <attune/kernels/row_cortex_m_narrow.hpp>
#include <attune/kernels/tile_cortex_m.hpp>
#include <attune/kernels/tile_cortex_m_narrow.hpp>
#include <attune/kernels/tile_mve.hpp>
#include <attune/kernels/transpose.hpp>
#include <attune/kernels/wide_tile_cortex_m.hpp>
#include <attune/kernels/widen.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

inline constexpr int kDepthBlock = 192;

namespace detail {

inline constexpr int kFewRows = 4;  // fewer are few

// The register block: kRows rows of kPackets packets. It must fit the register file with a packet of B and
// one of A.
template <class P>
constexpr int registers() {
#if defined(EIGEN_VECTORIZE_AVX512) || defined(__aarch64__)
  return 32;
#else
  // A Cortex-M FPU has 32 single registers, MVE 8 packets, x86 and NEON 16.
  return kIsScalar<P> ? 24 : ATTUNE_MVE ? 8 : 16;
#endif
}

// A block of few rows is wide: it needs sums enough to hide how long an addition takes.
template <class P>
constexpr int most_packets(int rows) {
  constexpr int kMany = registers<P>() == 32 ? 3 : registers<P>() / 8;
  if (kIsScalar<P>) return 4;
  if (kLanes<P> == 1 || ATTUNE_MVE || rows >= kFewRows) return kMany;
  return rows == 1 ? 8 : registers<P>() / (2 * rows);
}

constexpr int tile_packets(int most, int packets) {
  if (packets <= most) return packets;
  if (packets % most == 0) return most;
  return packets % (most - 1) == 0 && most > 2 ? most - 1 : most;
}

template <class P>
constexpr int tile_rows(int rows, int packets) {
  if (rows < kFewRows) return rows;
  const int most = kLanes<P> == 1                                  ? 4
                   : (registers<P>() - packets - 1) / packets > 12 ? 12
                                                                   : (registers<P>() - packets - 1) / packets;
  if (rows <= most) return rows;
  for (int r = most; r * 3 >= most * 2; --r) {
    if (rows % r == 0) return r;
  }
  return most;
}

// In the place of what is fetched (prefetch.hpp) while a tile or a panel is computed: nothing.
struct NoFetch {};
inline constexpr int kFetchSteps = 8;  // of k, from one fetch to the next

// c[kRows × kCols] = epilogue(Σ_k a(i, k) · b(k, j)), `a` by strides, rows of `b` contiguous kBRow apart. The
// last packet overlaps the one before it where kCols fills no packet. fetch(k / kFetchSteps) goes beside.
template <class P, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class B, class Epilogue, class Fetch = NoFetch>
ATTUNE_INLINE void tile(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                        [[maybe_unused]] const Fetch& fetch = {}) {
  constexpr int kWidth = kLanes<P>, kPackets = (kCols + kWidth - 1) / kWidth;
  static_assert(kBCol == 1 || kWidth == 1 || kGathers<P, B>);
  constexpr auto column = [](int j) { return j + 1 < kPackets ? j * kWidth : kCols - kWidth; };
  Array<Array<P, kPackets>, kRows> sum;
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      if constexpr (std::is_same_v<Epilogue, Continue>) {
        sum[i][j] = load<P>(c + i * kCRow + column(j));
      } else {
        sum[i][j] = broadcast<P>(Scalar(0));
      }
    }
  }
  for (int k = 0; k < kDepth; ++k) {
    if constexpr (!std::is_same_v<Fetch, NoFetch>) {
      if (k % kFetchSteps == 0) fetch(k / kFetchSteps);
    }
    Array<P, kPackets> row;
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) row[j] =
        load_row<P, kBCol>(b, k * kBRow + column(j) * kBCol, k);
    ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
      const Scalar value = a[i * kARow + k * kACol];
      ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) sum[i][j] = add_multiple(value, row[j], sum[i][j]);
    }
  }
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    Scalar* to = c + i * kCRow;
    const auto finished = [&](int j) ATTUNE_INLINE_LAMBDA {
      return epilogue(sum[i][j], to + column(j), col + column(j));
    };
    // What two packets share is finished in both before it is overwritten.
    const P last = finished(kPackets - 1);
    ATTUNE_UNROLL for (int j = 0; j + 1 < kPackets; ++j) store(to + column(j), finished(j));
    store(to + column(kPackets - 1), last);
  }
}

// A step of this many bytes from one k to the next wastes the cache: neighbouring k meet in the same few
// sets. Operands that step so far are copied first, kRowBlock rows of A and a panel of B at a time, where
// enough work follows to pay.
inline constexpr int kFarApart = 1024;
inline constexpr int kWorthCopying = 32;
inline constexpr int kWorthWidening = 16;  // rows of A from which on a narrow B is copied, too
inline constexpr int kRowBlock = 24;       // a multiple of every tile's rows

// Whether a product fetches: one of several tiles a panel, whose operands leave the first-level cache.
template <class P>
constexpr bool fetches(int rows, int cols, int depth) {
  const long long scalars = 1LL * rows * depth + 1LL * depth * cols + 1LL * rows * cols;
  return kPrefetches && kLanes<P> > 1 && rows >= kRowBlock && depth >= kWorthCopying &&
         scalars * static_cast<int>(sizeof(ScalarOf<P>)) > kFirstLevelBytes;
}

// All rows of one panel of kCols columns. Fetched beside are the rows of C that a tile is for, those of A for
// the tile after it, and a share of `next`, the lines of B that come after this panel.
template <class P, int kCols, int kRows, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class B, class Epilogue, class Next = NoFetch>
ATTUNE_INLINE void panel(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                         [[maybe_unused]] const Next& next = {}) {
  constexpr int kTile = tile_rows<P>(kRows, (kCols + kLanes<P> - 1) / kLanes<P>);
  constexpr int kWhole = kRows / kTile * kTile;
  for (int i = 0; i < kWhole; i += kTile) {
    if constexpr (std::is_same_v<Next, NoFetch>) {
      tile<P, kTile, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a + i * kARow, b, c + i * kCRow, col,
                                                                       epilogue);
    } else {
      constexpr int kParts = (kDepth + kFetchSteps - 1) / kFetchSteps;
      const int fetched = i / kTile * kParts;
      const Lines<kTile, kDepth, kARow, Scalar> of_a{a + std::min(i + kTile, kRows - kTile) * kARow};
      const Lines<kTile, kCols, kCRow, Scalar> of_c{c + i * kCRow};
      tile<P, kTile, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          a + i * kARow, b, c + i * kCRow, col, epilogue, [&](int part) ATTUNE_INLINE_LAMBDA {
            if constexpr (kACol == 1) of_a.template fetch<kParts>(part);
            of_c.template fetch_to_write<kParts>(part);
            next.template fetch<kParts*(kWhole / kTile)>(fetched + part);
          });
    }
  }
  if constexpr (kWhole < kRows) {
    tile<P, kRows - kWhole, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
        a + kWhole * kARow, b, c + kWhole * kCRow, col, epilogue);
  }
}

// Columns [kFrom, kCols) in panels of at most kMaxLanes lanes, the rest in narrower packets.
template <int kFrom, int kMaxLanes, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow,
          int kBCol, int kCRow, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void panels(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kRest = kCols - kFrom;
  if constexpr (kRest > 0) {
    using P = Packet<Scalar, kMaxLanes>;
    constexpr int kWidth = kLanes<P>;
    if constexpr (kRest < kWidth) {
      panels<kFrom, kWidth / 2, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    } else {
      constexpr bool kInRows = kBCol == 1 || kWidth == 1 || kGathers<P, B>;
      constexpr int kMost = most_packets<P>(kInRows ? kRows : kFewRows);  // copies keep their size
      constexpr int kPackets = tile_packets(kMost, kRest / kWidth);
      // A rest that fills no packet goes with the last panel of few rows.
      constexpr bool kOverlaps = kRows < kFewRows && kWidth > 1 && kBCol == 1 && kRest > kWidth &&
                                 kRest % kWidth != 0 && kRest / kWidth < kMost;
      constexpr int kPanel = kOverlaps ? kRest : kPackets * kWidth;
      constexpr int kEnd = kFrom + kRest / kPanel * kPanel;
      constexpr bool kFarRows = kRows >= kWorthCopying && kDepth >= kWorthCopying &&
                                kBRow * static_cast<int>(sizeof(Scalar)) >= kFarApart;
      constexpr bool kWidens =
          !std::is_same_v<B, const Scalar*> && !kGathers<P, B> && kRows >= kWorthWidening;
      constexpr bool kCopyB = kWidth > 1 && kBCol == 1 && (kFarRows || kWidens);
      constexpr bool kFetches = std::is_same_v<B, const Scalar*> && kWidth == kLanes<Packet<Scalar>> &&
                                fetches<P>(kRows, kCols, kDepth);
      for (int j = kFrom; j < kEnd; j += kPanel) {
        // Behind the last panel comes the first one of other terms, or what stands behind B: the layers of a
        // model stand one behind the other, as forward reads them.
        const auto next = [&]() ATTUNE_INLINE_LAMBDA {
          if constexpr (!kFetches) {
            return NoFetch{};
          } else if constexpr (kBCol == 1) {
            return Lines<kDepth, kPanel, kBRow, Scalar>{b +
                                                        (j + kPanel < kCols ? j + kPanel : kDepth * kBRow)};
          } else {
            return Lines<kPanel, kDepth, kBCol, Scalar>{b +
                                                        (j + kPanel < kCols ? (j + kPanel) * kBCol : kDepth)};
          }
        }();
        if constexpr (kCopyB) {
          alignas(P) Array<Scalar, kDepth * kPanel> rows;
          for (int k = 0; k < kDepth; ++k) {
            ATTUNE_UNROLL for (int n = 0; n < kPanel; n += kWidth) {
              store(rows + k * kPanel + n, load_row<P>(b, k * kBRow + j + n, k));
            }
          }
          panel<P, kPanel, kRows, kDepth, kARow, kACol, kPanel, 1, kCRow>(a, static_cast<const Scalar*>(rows),
                                                                          c + j, j, epilogue, next);
        } else if constexpr (kInRows) {
          panel<P, kPanel, kRows, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b + j * kBCol, c + j, j,
                                                                             epilogue, next);
        } else {
          static_assert(kBRow == 1, "attune::kernels::product: one stride of B must be 1");
          alignas(P) Array<Scalar, kDepth * kPanel> rows;
          for (int n = 0; n < kPanel; n += kWidth)
            transpose_panel<P, kDepth, kPanel, kBCol>(b + (j + n) * kBCol, rows + n);
          panel<P, kPanel, kRows, kDepth, kARow, kACol, kPanel, 1, kCRow>(a, static_cast<const Scalar*>(rows),
                                                                          c + j, j, epilogue, next);
        }
      }
      panels<kEnd, kMaxLanes, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    }
  }
}

// A few rows of a transposed A, whose columns are kACol apart, copied side by side.
template <int kRows, int kCols, int kDepth, int kACol, int kBRow, int kBCol, int kCRow, class Scalar, class B,
          class Epilogue>
ATTUNE_INLINE void copied_rows_product(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  alignas(Packet<Scalar>) Array<Scalar, kDepth * kRows> columns;
  for (int k = 0; k < kDepth; ++k) {
    for_each_packet<Scalar>(kRows, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      store(columns + k * kRows + i, load<P>(a + k * kACol + i));
    });
    if constexpr (kPrefetches) Lines<1, kRows, 0, Scalar>{a + k * kACol + kRows}.template fetch<1>(0);
  }
  panels<0, 1 << 10, kRows, kCols, kDepth, 1, kRows, kBRow, kBCol, kCRow>(static_cast<const Scalar*>(columns),
                                                                          b, c, epilogue);
}

#if ATTUNE_CORTEX_M_FPU

template <class Epilogue>
constexpr TileShape tile_shape(int rows, int cols, int a_col, int b_row, int b_col) {
  return !std::is_same_v<Epilogue, Continue> &&
                 fits_wide_tile(rows, cols, a_col, b_row, b_col, MayRepeat<Epilogue>)
             ? TileShape::kWide
             : TileShape::kSquare;
}

template <TileShape shape, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol,
          int kCRow>
consteval const TileGrid& grid_of() {
  if constexpr (shape == TileShape::kWide) {
    return kWideGrid<kRows, kCols, kDepth, kARow, kBRow, kBCol, kCRow>;
  } else {
    return kTileGrid<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>;
  }
}

#endif

// One block of k.
template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class B, class Epilogue>
ATTUNE_INLINE void block_product(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kWidest = 1 << 10;
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<B, const float*> && fits_few_rows(kRows, kCols, kDepth, kACol, kBRow, kBCol)) {
    return few_rows_product(a, b, c, kRowGrid<kRows, kCols, kDepth, kARow, kBRow, kBCol, kCRow>, epilogue);
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_narrow_row<B>(kRows, kCols, kDepth, kACol, kBRow)) {
    using Element = std::remove_cvref_t<decltype(*elements_of(b))>;
    return few_rows_product(a, b, c, kNarrowRowGrid<Element, kCols, kDepth, kBCol>, epilogue);
  }
  if constexpr (std::is_same_v<B, const float*> &&
                fits_tile(kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol)) {
    constexpr TileShape kTile = tile_shape<Epilogue>(kRows, kCols, kACol, kBRow, kBCol);
    constexpr int kTileRows = tile_rows(kTile), kTileCols = tile_cols(kTile);
    constexpr int kTiledRows = kRows / kTileRows * kTileRows, kTiledCols = kCols / kTileCols * kTileCols;
    const auto tiles = [&]<int kGridRows, int kGridCols>(int first_row, int first_col,
                                                         const auto& finish) ATTUNE_INLINE_LAMBDA {
      using Finish = std::remove_cvref_t<decltype(finish)>;
      constexpr const TileGrid& kGrid =
          grid_of<kTile, kGridRows, kGridCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>();
      const float *a_tiles = a + first_row * kARow, *b_tiles = b + first_col * kBCol;
      float* c_tiles = c + first_row * kCRow + first_col;
      if constexpr (std::is_empty_v<Finish>) {
        tiles_product<kTile, Finish>(a_tiles, b_tiles, c_tiles, kGrid);
      } else {
        tiles_product<kTile, Finish>(a_tiles, b_tiles, c_tiles, kGrid, finish);
      }
    };
    tiles.template operator()<kTiledRows, kTiledCols>(0, 0, epilogue);
    // The rest, if any, in tiles that begin earlier; one of four rows, one column, and what C is added to, is
    // the portable block's.
    constexpr int kRowsLeft = kRows - kTiledRows, kLastRow = kRows - kTileRows;
    constexpr int kColsLeft = kCols - kTiledCols, kLastCol = kCols - kTileCols;
    constexpr bool kRowsAgain = MayRepeat<Epilogue> && 2 * kRowsLeft >= kTileRows;
    if constexpr (kRowsAgain) {
      tiles.template operator()<kTileRows, kTiledCols>(kLastRow, 0, epilogue);
    } else if constexpr (kRowsLeft > 0) {
      panels<0, kWidest, kRowsLeft, kTiledCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          a + kTiledRows * kARow, b, c + kTiledRows * kCRow, epilogue);
    }
    if constexpr (MayRepeat<Epilogue> && kColsLeft > 1) {
      const auto finish = from_column(epilogue, kLastCol);
      tiles.template operator()<kTiledRows, kTileCols>(0, kLastCol, finish);
      if constexpr (kRowsAgain) {
        tiles.template operator()<kTileRows, kTileCols>(kLastRow, kLastCol, finish);
      } else if constexpr (kRowsLeft > 0) {
        panels<kTiledCols, kWidest, kRowsLeft, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
            a + kTiledRows * kARow, b, c + kTiledRows * kCRow, epilogue);
      }
    } else {
      panels<kTiledCols, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    }
    return;
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_narrow_tile<B>(kCols, kDepth, kACol, kBRow, kBCol)) {
    // Rows by eight, then four, then the portable block's.
    constexpr int kEights = kRows / kNarrowRows * kNarrowRows, kFours = kRows / kTileSide * kTileSide;
    constexpr int kTwos = kCols / kNarrowCols * kNarrowCols, kFourCols = kCols / kTileSide * kTileSide;
    if constexpr (kEights > 0) {
      narrow_tiles_product<false>(a, elements_of(b), c,
                                  kNarrowGrid<B, false, kEights, kTwos, kDepth, kARow, kBRow, kBCol, kCRow>,
                                  scales_of(b), epilogue);
      panels<kTwos, kWidest, kEights, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    }
    if constexpr (kEights < kFours) {
      const Scalar* rest_a = a + kEights * kARow;
      Scalar* rest_c = c + kEights * kCRow;
      narrow_tiles_product<true>(
          rest_a, elements_of(b), rest_c,
          kNarrowGrid<B, true, kTileSide, kFourCols, kDepth, kARow, kBRow, kBCol, kCRow>, scales_of(b),
          epilogue);
      panels<kFourCols, kWidest, kTileSide, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          rest_a, b, rest_c, epilogue);
    }
    if constexpr (kFours < kRows) {
      panels<0, kWidest, kRows - kFours, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          a + kFours * kARow, b, c + kFours * kCRow, epilogue);
    }
    return;
  }
#elif ATTUNE_MVE && ATTUNE_FUSED
  if constexpr (std::is_same_v<B, const float*> && fits_mve(kCols, kARow, kACol, kBRow, kBCol)) {
    mve_product<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    panels<kCols / kMveLanes * kMveLanes, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
        a, b, c, epilogue);
    return;
  }
#endif
  using Widest = Packet<Scalar>;
  constexpr bool kCopyA = kLanes < Widest >> 1 && kARow == 1 &&
                          kACol * static_cast<int>(sizeof(Scalar)) >= kFarApart && kRows >= kWorthCopying &&
                          kCols >= kWorthCopying && kDepth >= kWorthCopying;
  if constexpr (kCopyA) {
    constexpr int kWhole = kRows / kRowBlock * kRowBlock;
    for (int i = 0; i < kWhole; i += kRowBlock) {
      copied_rows_product<kRowBlock, kCols, kDepth, kACol, kBRow, kBCol, kCRow>(a + i, b, c + i * kCRow,
                                                                                epilogue);
    }
    if constexpr (kWhole < kRows) {
      copied_rows_product<kRows - kWhole, kCols, kDepth, kACol, kBRow, kBCol, kCRow>(
          a + kWhole, b, c + kWhole * kCRow, epilogue);
    }
  } else {
    panels<0, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
  }
}

template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class B, class Epilogue>
[[gnu::noinline]] void product(const Scalar* a, B b, Scalar* c, Epilogue epilogue) {
  if constexpr (kDepth <= kDepthBlock) {
    block_product<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
  } else {
    static_assert(kAddsUp<Epilogue>);
    block_product<kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    int k = kDepthBlock;
    for (; k + kDepthBlock <= kDepth; k += kDepthBlock) {
      block_product<kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(
          a + k * kACol, rows_from(b, k * kBRow, k), c, adding(epilogue));
    }
    if constexpr (kDepth % kDepthBlock != 0) {
      block_product<kRows, kCols, kDepth % kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(
          a + k * kACol, rows_from(b, k * kBRow, k), c, adding(epilogue));
    }
  }
}

template <class>
inline constexpr bool kIsNarrow = false;
template <class Element, class Scalar, int kRows, int kCols, int kRowStride, int kColStride,
          ScalesOf kScalesOf>
inline constexpr bool
    kIsNarrow<NarrowView<Element, Scalar, kRows, kCols, kRowStride, kColStride, kScalesOf>> = true;

/// Whether a product is nothing but blocks in assembly, which are a call of their own.
template <class A, class B, class C, class Epilogue>
inline constexpr bool kIsWholeBlocks = [] {
#if ATTUNE_CORTEX_M_FPU
  constexpr TileShape kTile =
      tile_shape<Epilogue>(C::rows, C::cols, A::col_stride, B::row_stride, B::col_stride);
  return std::is_same_v<typename C::Scalar, float> && A::cols <= kDepthBlock && !kIsNarrow<B> &&
         (fits_few_rows(C::rows, C::cols, A::cols, A::col_stride, B::row_stride, B::col_stride) ||
          (C::rows % tile_rows(kTile) == 0 && C::cols % tile_cols(kTile) == 0 &&
           fits_tile(C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride, B::col_stride)));
#else
  return false;
#endif
}();

// An epilogue behind the scales of B's columns, if they have any.
template <class View, class Epilogue>
ATTUNE_INLINE auto with_scales_of(const View&, const Epilogue& epilogue) {
  return epilogue;
}
template <class Element, class Scalar, int kRows, int kCols, int kRowStride, int kColStride, class Epilogue>
ATTUNE_INLINE auto with_scales_of(
    const NarrowView<Element, Scalar, kRows, kCols, kRowStride, kColStride, ScalesOf::kColumns>& b,
    const Epilogue& epilogue) {
  return ScaleColumns<Scalar, Epilogue>{b.scale, epilogue};
}

}  // namespace detail

/// C = epilogue(A·B) of three MatrixViews; B may be a NarrowView. A and B by any strides (`x.transpose()`,
/// `x.columns<n>(j)`), rows of C contiguous; C may not overlap A or B.
template <class A, class B, class C, class Epilogue = Assign>
ATTUNE_INLINE void product(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
  using Scalar = typename C::Scalar;
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows,
                "attune::kernels::product: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  static_assert(C::col_stride == 1,
                "attune::kernels::product: C must be row-major; swap and transpose the operands");
  constexpr bool kBlas = goes_to_blas(C::rows, C::cols, A::cols) && !detail::kIsNarrow<B>;
  // A sum of several blocks is finished first, then given to its epilogue in a pass of its own.
  constexpr bool kEpilogueLast = !detail::kAddsUp<Epilogue> && (A::cols > kDepthBlock || kBlas);
  std::conditional_t<kEpilogueLast, Assign, Epilogue> during{};
  if constexpr (!kEpilogueLast) during = epilogue;
  if constexpr (kBlas) {
#if ATTUNE_BLAS
    detail::blas_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                         B::col_stride, C::row_stride, Scalar>(a.data, b.data, c.data,
                                                               std::is_same_v<Epilogue, Accumulate> ? 1 : 0);
#endif
  } else if constexpr (detail::kIsWholeBlocks<A, B, C, Epilogue>) {
    detail::block_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                          B::col_stride, C::row_stride, Scalar>(a.data, detail::operand_of(b), c.data,
                                                                detail::with_scales_of(b, during));
  } else {
    detail::product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride, B::col_stride,
                    C::row_stride, Scalar>(a.data, detail::operand_of(b), c.data,
                                           detail::with_scales_of(b, during));
  }
  if constexpr (kEpilogueLast) {
    for (int i = 0; i < C::rows; ++i) {
      Scalar* row = c.data + i * C::row_stride;
      for_each_packet<Scalar>(C::cols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        store(row + j, epilogue(load<P>(row + j), row + j, j));
      });
    }
  }
}

namespace detail {

// Sums that go on: portable blocks and tile_cortex_m.hpp's begin with what is there.
template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar>
[[gnu::noinline]] void continued_product(const Scalar* a, const Scalar* b, Scalar* c) {
  static_assert(kDepth <= kDepthBlock);
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float> &&
                fits_tile(kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol)) {
    return block_product<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, Continue{});
  }
#endif
  panels<0, 1 << 10, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, Continue{});
}

}  // namespace detail

/// C goes on: C = C + A·B, term by term, where C holds the sums of what comes before in A and B.
template <class A, class B, class C>
ATTUNE_INLINE void product(const A& a, const B& b, const C& c, Continue) {
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows && C::col_stride == 1);
  detail::continued_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                            B::col_stride, C::row_stride>(a.data, b.data, c.data);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
