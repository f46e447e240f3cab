// The portable register block of products, and how a product is made of it.
//
// A tile of C, some rows by some packets, stays in registers while k runs: a column of A is broadcast, a row
// of B is read in packets (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
// Operands are read where they stand and a transposed A only swaps strides; copied first are the panels of a
// transposed B, where packets need their rows contiguous, and operands whose rows lie far apart.
#pragma once

#include <algorithm>
#include <type_traits>

#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/portable/prefetch.hpp>
#include <attune/kernels/portable/transpose.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/target.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

inline constexpr int kFewRows = 4;  // fewer are few

// A block of few rows is wide: it needs sums enough to hide how long an addition takes.
template <class P>
constexpr int most_packets(int rows) {
  constexpr int kMany = registers<P>() == 32 ? 3 : registers<P>() / 8;
  if (kIsScalar<P>) return 4;
  if (kLanes<P> == 1 || kHasMve || rows >= kFewRows) return kMany;
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

// In the place of what is fetched (portable/prefetch.hpp) while a tile or a panel is computed: nothing.
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
  constexpr int kReads = reads_of_a<P>(kPackets);
  Array<const Scalar*, kReads> of_a;
  ATTUNE_UNROLL for (const Scalar*& from : of_a) {
    from = a;
    if constexpr (kReads > 1) forget(from);
  }
  for (int k = 0; k < kDepth; ++k) {
    if constexpr (!std::is_same_v<Fetch, NoFetch>) {
      if (k % kFetchSteps == 0) fetch(k / kFetchSteps);
    }
    Array<P, kPackets> row;
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      row[j] = load_row<P, kBCol>(b, k * kBRow + column(j) * kBCol, k);
      if constexpr (kRows > 1) read_once(row[j]);
    }
    ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
      ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
        sum[i][j] = add_multiple(of_a[j % kReads][i * kARow + k * kACol], row[j], sum[i][j]);
      }
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

// Whether columns of A, so many bytes apart, are copied for a product of so many columns: its panels read
// them again and again, and that must be worth more the nearer they lie. Measured on a Zen 4.
constexpr bool worth_copying_a(int step, int cols) {
  return step >= kFarApart && cols >= 128 && 1LL * step * cols >= 512 * 1024;
}

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
      const Lines<kTile, kDepth, kARow, Scalar> of_a{a + (std::min)(i + kTile, kRows - kTile) * kARow};
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

// Columns [kFrom, kCols) in panels of at most kMaxLanes lanes, the rest in a narrower packet or several.
template <int kFrom, int kMaxLanes, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow,
          int kBCol, int kCRow, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void panels(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kRest = kCols - kFrom;
  if constexpr (kRest > 0) {
    using P = Packet<Scalar, kMaxLanes>;
    constexpr int kWidth = kLanes<P>;
    if constexpr (kRest < kWidth && kCols > kWidth && kRest > kLanes<Packet<Scalar, kWidth / 2>> &&
                  kMayRepeat<Epilogue> && !kHasMve) {
      // In one packet that begins earlier: what it shares with others is computed twice.
      panels<kCols - kWidth, kWidth, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c,
                                                                                              epilogue);
    } else if constexpr (kRest < kWidth) {
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

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail
