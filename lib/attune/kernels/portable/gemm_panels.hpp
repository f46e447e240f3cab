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
#include <attune/kernels/portable/gemm_shape.hpp>
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

// c[rows × cols] = epilogue(Σ_k a(i, k) · b(k, j)), `a` by strides, rows of `b` contiguous. The last packet
// overlaps the one before it where columns fill no packet. Terms may be counted at run time: `depth`. fetch(k
// / kFetchSteps) goes beside.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Fetch = NoFetch,
          class Depth = std::integral_constant<int, shape.depth>>
ATTUNE_INLINE void tile(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                        [[maybe_unused]] const Fetch& fetch = {}, Depth depth = {}) {
  constexpr int kRows = shape.rows, kCols = shape.cols;
  constexpr int kWidth = kLanes<P>, kPackets = (kCols + kWidth - 1) / kWidth;
  static_assert(shape.b_col == 1 || kWidth == 1 || kGathers<P, B>);
  constexpr auto column = [](int j) { return j + 1 < kPackets ? j * kWidth : kCols - kWidth; };
  Array<Array<P, kPackets>, kRows> sum;
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      if constexpr (std::is_same_v<Epilogue, Continue>) {
        sum[i][j] = load<P>(c + i * shape.c_row + column(j));
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
  for (int k = 0; k < depth; ++k) {
    if constexpr (!std::is_same_v<Fetch, NoFetch>) {
      if (k % kFetchSteps == 0) fetch(k / kFetchSteps);
    }
    Array<P, kPackets> row;
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      row[j] = load_row<P, shape.b_col>(b, k * shape.b_row + column(j) * shape.b_col, k);
      if constexpr (kRows > 1) read_once(row[j]);
    }
    ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
      ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
        sum[i][j] = add_multiple(of_a[j % kReads][i * shape.a_row + k * shape.a_col], row[j], sum[i][j]);
      }
    }
  }
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    Scalar* to = c + i * shape.c_row;
    const auto finished = [&](int j) ATTUNE_INLINE_LAMBDA {
      return epilogue(sum[i][j], to + column(j), col + column(j));
    };
    // What two packets share is finished in both before it is overwritten.
    const P last = finished(kPackets - 1);
    ATTUNE_UNROLL for (int j = 0; j + 1 < kPackets; ++j) store(to + column(j), finished(j));
    store(to + column(kPackets - 1), last);
  }
}

// A step of this many bytes from one k to the next wastes the cache: neighboring k meet in the same few
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

// All rows of one panel of columns. Fetched beside are the rows of C that a tile is for, those of A for
// the tile after it, and a share of `next`, the lines of B that come after this panel.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Next = NoFetch>
ATTUNE_INLINE void rows_of_panel(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                                 [[maybe_unused]] const Next& next = {}) {
  constexpr int kTile = tile_rows<P>(shape.rows, (shape.cols + kLanes<P> - 1) / kLanes<P>);
  constexpr int kWhole = shape.rows / kTile * kTile;
  for (int i = 0; i < kWhole; i += kTile) {
    if constexpr (std::is_same_v<Next, NoFetch>) {
      tile<P, shape.with_rows(kTile)>(a + i * shape.a_row, b, c + i * shape.c_row, col, epilogue);
    } else {
      constexpr int kParts = (shape.depth + kFetchSteps - 1) / kFetchSteps;
      const int fetched = i / kTile * kParts;
      const Lines<kTile, shape.depth, shape.a_row, Scalar> of_a{
          a + (std::min)(i + kTile, shape.rows - kTile) * shape.a_row};
      const Lines<kTile, shape.cols, shape.c_row, Scalar> of_c{c + i * shape.c_row};
      tile<P, shape.with_rows(kTile)>(a + i * shape.a_row, b, c + i * shape.c_row, col, epilogue,
                                      [&](int part) ATTUNE_INLINE_LAMBDA {
                                        if constexpr (shape.a_col == 1) of_a.template fetch<kParts>(part);
                                        of_c.template fetch_to_write<kParts>(part);
                                        next.template fetch<kParts*(kWhole / kTile)>(fetched + part);
                                      });
    }
  }
  if constexpr (kWhole < shape.rows) {
    tile<P, shape.with_rows(shape.rows - kWhole)>(a + kWhole * shape.a_row, b, c + kWhole * shape.c_row, col,
                                                  epilogue);
  }
}

// The same in a function of its own, so that it is compiled once and not copied into its callers.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Next>
[[gnu::noinline]] void panel_in_call(const Scalar* a, B b, Scalar* c, int col, Epilogue epilogue, Next next) {
  rows_of_panel<P, shape>(a, b, c, col, epilogue, next);
}

// A panel that fetches is large: there a call takes no time.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Next>
ATTUNE_INLINE void panel(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                         const Next& next) {
  if constexpr (std::is_same_v<Next, NoFetch>) {
    rows_of_panel<P, shape>(a, b, c, col, epilogue);
  } else {
    panel_in_call<P, shape>(a, b, c, col, epilogue, next);
  }
}

// Columns [kFrom, shape.cols) in panels of at most kMaxLanes lanes, the rest in a narrower packet or several.
template <int kFrom, int kMaxLanes, GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void panels(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kRest = shape.cols - kFrom;
  if constexpr (kRest > 0) {
    using P = Packet<Scalar, kMaxLanes>;
    constexpr int kWidth = kLanes<P>;
    if constexpr (kRest < kWidth && shape.cols > kWidth && kRest > kLanes<Packet<Scalar, kWidth / 2>> &&
                  kMayRepeat<Epilogue> && !kHasMve) {
      // In one packet that begins earlier: what it shares with others is computed twice.
      panels<shape.cols - kWidth, kWidth, shape>(a, b, c, epilogue);
    } else if constexpr (kRest < kWidth) {
      panels<kFrom, kWidth / 2, shape>(a, b, c, epilogue);
    } else {
      constexpr bool kInRows = shape.b_col == 1 || kWidth == 1 || kGathers<P, B>;
      constexpr int kMost = most_packets<P>(kInRows ? shape.rows : kFewRows);  // copies keep their size
      constexpr int kPackets = tile_packets(kMost, kRest / kWidth);
      // A rest that fills no packet goes with the last panel of few rows.
      constexpr bool kOverlaps = shape.rows < kFewRows && kWidth > 1 && shape.b_col == 1 && kRest > kWidth &&
                                 kRest % kWidth != 0 && kRest / kWidth < kMost;
      constexpr int kPanel = kOverlaps ? kRest : kPackets * kWidth;
      constexpr int kEnd = kFrom + kRest / kPanel * kPanel;
      constexpr bool kFarRows = shape.rows >= kWorthCopying && shape.depth >= kWorthCopying &&
                                shape.b_row * static_cast<int>(sizeof(Scalar)) >= kFarApart;
      constexpr bool kWidens =
          !std::is_same_v<B, const Scalar*> && !kGathers<P, B> && shape.rows >= kWorthWidening;
      constexpr bool kCopyB = kWidth > 1 && shape.b_col == 1 && (kFarRows || kWidens);
      constexpr bool kFetches = std::is_same_v<B, const Scalar*> && kWidth == kLanes<Packet<Scalar>> &&
                                fetches<P>(shape.rows, shape.cols, shape.depth);
      for (int j = kFrom; j < kEnd; j += kPanel) {
        // Behind the last panel comes the first one of other terms, or what stands behind B: the layers of a
        // model stand one behind the other, as forward reads them.
        const auto next = [&]() ATTUNE_INLINE_LAMBDA {
          if constexpr (!kFetches) {
            return NoFetch{};
          } else if constexpr (shape.b_col == 1) {
            return Lines<shape.depth, kPanel, shape.b_row, Scalar>{
                b + (j + kPanel < shape.cols ? j + kPanel : shape.depth * shape.b_row)};
          } else {
            return Lines<kPanel, shape.depth, shape.b_col, Scalar>{
                b + (j + kPanel < shape.cols ? (j + kPanel) * shape.b_col : shape.depth)};
          }
        }();
        if constexpr (kCopyB) {
          alignas(P) Array<Scalar, shape.depth * kPanel> rows;
          for (int k = 0; k < shape.depth; ++k) {
            ATTUNE_UNROLL for (int n = 0; n < kPanel; n += kWidth) {
              store(rows + k * kPanel + n, load_row<P>(b, k * shape.b_row + j + n, k));
            }
          }
          panel<P, shape.with_cols(kPanel).with_b(kPanel, 1)>(a, static_cast<const Scalar*>(rows), c + j, j,
                                                              epilogue, next);
        } else if constexpr (kInRows) {
          panel<P, shape.with_cols(kPanel)>(a, b + j * shape.b_col, c + j, j, epilogue, next);
        } else {
          static_assert(shape.b_row == 1, "attune::kernels::gemm: one stride of B must be 1");
          alignas(P) Array<Scalar, shape.depth * kPanel> rows;
          for (int n = 0; n < kPanel; n += kWidth)
            transpose_panel<P, shape.depth, kPanel, shape.b_col>(b + (j + n) * shape.b_col, rows + n);
          panel<P, shape.with_cols(kPanel).with_b(kPanel, 1)>(a, static_cast<const Scalar*>(rows), c + j, j,
                                                              epilogue, next);
        }
      }
      panels<kEnd, kMaxLanes, shape>(a, b, c, epilogue);
    }
  }
}

// A few rows of a transposed A, copied side by side.
template <GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void copied_rows_gemm(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  alignas(Packet<Scalar>) Array<Scalar, shape.depth * shape.rows> columns;
  for (int k = 0; k < shape.depth; ++k) {
    for_each_packet<Scalar>(shape.rows, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      store(columns + k * shape.rows + i, load<P>(a + k * shape.a_col + i));
    });
    if constexpr (kPrefetches)
      Lines<1, shape.rows, 0, Scalar>{a + k * shape.a_col + shape.rows}.template fetch<1>(0);
  }
  panels<0, 1 << 10, shape.with_a(1, shape.rows)>(static_cast<const Scalar*>(columns), b, c, epilogue);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail
