// The portable register block of products, and the loops around it.
//
// A tile of C, some rows by some packets, stays in registers while k runs: an element of A's column is
// broadcast, and B's row is read in packets (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008). Operands are read in place; a transposed A only swaps strides. Copies come first in
// two cases: panels of a transposed B, as packets need contiguous rows, and operands whose rows lie far
// apart.
#pragma once

#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/portable/prefetch.hpp>
#include <attune/kernels/portable/transpose.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/target.hpp>

namespace ATTUNE_NAMESPACE::kernels::detail {

inline constexpr int kFewRows = 4;  // below this, rows are few

// A block of few rows is wide, with enough sums to hide the latency of an addition.
template <class P>
constexpr int most_packets(int rows) {
  constexpr int kMany = kMultipliesByLanes<P> ? 4 : registers<P>() == 32 ? 3 : registers<P>() / 8;
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
  // Beside the sums a packet of each row of A, or one of all.
  const int left = kMultipliesByLanes<P> ? (registers<P>() - packets) / (packets + 1)
                                         : (registers<P>() - packets - 1) / packets;
  const int most = kLanes<P> == 1 ? 4 : smaller(left, 12);
  if (rows <= most) return rows;
  for (int r = most; r * 3 >= most * 2; --r) {
    if (rows % r == 0) return r;
  }
  return most;
}

// The first column of packet j. If columns do not fill the last packet, it overlaps the packet before it.
template <int kWidth, int kCols>
constexpr int column_of(int j) {
  return smaller(j * kWidth, kCols - kWidth);
}

// Rows of the tiles of a panel.
template <class P>
constexpr int rows_of_tile(const GemmShape& panel) {
  return tile_rows<P>(panel.rows, (panel.cols + kLanes<P> - 1) / kLanes<P>);
}

// Fetches nothing while a tile or a panel is computed (portable/prefetch.hpp).
struct NoFetch {
  ATTUNE_INLINE void operator()(int) const {}
};
inline constexpr int kFetchSteps = 8;  // steps of k between fetches

// Whether a packet has elements of A: of a row for some k, or of several rows for one k.
template <class P, GemmShape shape>
inline constexpr bool kReadsPackets = kMultipliesByLanes<P> &&
                                      (shape.a_col == 1 || (shape.a_row == 1 && shape.rows % kLanes<P> == 0));
inline constexpr int kStepsAtOnce = 8;  // k, a multiple of the lanes

// Adds the products of kStepsAtOnce k, from `first` on, to the sums. `a` begins at them, `b` at k = 0.
template <class P, GemmShape shape, class Scalar, class B, class Sums>
ATTUNE_INLINE void add_steps(const Scalar* a, B b, int first, Sums& sum) {
  constexpr int kRows = shape.rows, kCols = shape.cols;
  constexpr int kWidth = kLanes<P>, kPackets = (kCols + kWidth - 1) / kWidth;
  constexpr bool kOfRow = shape.a_col == 1;
  constexpr int kPacketsOfA = kOfRow ? kRows : kRows / kWidth;
  Array<P, kPacketsOfA> of_a;
  int at = 0;  // the k of `b`
  ATTUNE_UNROLL for (int step = 0; step < kStepsAtOnce; ++step) {
    if constexpr (std::is_same_v<B, const Scalar*>) {  // one address for four k: offsets of LDP are short
      if (step % 4 == 0) {
        b += (first + step - at) * shape.b_row;
        at = first + step;
        forget(b);
      }
    }
    ATTUNE_UNROLL for (int i = 0; i < kPacketsOfA; ++i) {
      if (!kOfRow) of_a[i] = load<P>(a + i * kWidth + step * shape.a_col);
      if (kOfRow && step % kWidth == 0) of_a[i] = load<P>(a + i * shape.a_row + step);
    }
    Array<P, kPackets> row;
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      const int col = column_of<kWidth, kCols>(j);
      row[j] =
          load_row<P, shape.b_col>(b, (first + step - at) * shape.b_row + col * shape.b_col, first + step);
    }
    ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
      ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
        add_multiple_of_lane(of_a[kOfRow ? i : i / kWidth], kOfRow ? step % kWidth : i % kWidth, row[j],
                             sum[i][j]);
      }
    }
  }
}

// c[rows × cols] = epilogue(Σ_k a(i, k) · b(k, j)), `a` with strides, rows of `b` contiguous. `depth` may be
// a run-time number of terms. Calls fetch(k / kFetchSteps) on the way.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Fetch = NoFetch,
          class Depth = std::integral_constant<int, shape.depth>>
ATTUNE_INLINE void tile(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue,
                        const Fetch& fetch = {}, Depth depth = {}) {
  constexpr int kRows = shape.rows, kCols = shape.cols;
  constexpr int kWidth = kLanes<P>, kPackets = (kCols + kWidth - 1) / kWidth;
  static_assert(shape.b_col == 1 || kWidth == 1 || kGathers<P, B>);
  constexpr auto column = column_of<kWidth, kCols>;
  // −0 + x is x, whatever its sign.
  constexpr float kZero = begins_with_a_term<Epilogue>(shape) && !std::is_same_v<Depth, int> ? -0.0f : 0.0f;
  Array<Array<P, kPackets>, kRows> sum;
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      sum[i][j] = first_sum<P>(epilogue, c + i * shape.c_row + column(j), kZero);
    }
  }
  int k = 0;
  if constexpr (kRows > 1 && kReadsPackets<P, shape> && !std::is_same_v<Depth, int> &&
                std::is_same_v<Fetch, NoFetch>) {
    for (; k + kStepsAtOnce <= depth; k += kStepsAtOnce) {
      add_steps<P, shape>(a + k * shape.a_col, b, k, sum);
    }
  }
  constexpr int kReads = reads_of_a<P>(kPackets);
  Array<const Scalar*, kReads> of_a;
  ATTUNE_UNROLL for (const Scalar*& from : of_a) {
    from = a;
    if constexpr (kReads > 1) forget(from);
  }
  for (; k < depth; ++k) {
    if (k % kFetchSteps == 0) fetch(k / kFetchSteps);
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
    // Columns in two packets are finished in both before either is stored.
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      sum[i][j] = epilogue(sum[i][j], to + column(j), col + column(j));
    }
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) store(to + column(j), sum[i][j]);
  }
}

// A step of this many bytes between neighboring k wastes the cache: they compete for the same few sets.
// Operands with such steps are copied first, kRowBlock rows of A and a panel of B at a time, if enough work
// follows.
inline constexpr int kFarApart = 1024;
inline constexpr int kMinRowsToCopy = 32;
inline constexpr int kWorthWidening = 16;  // rows of A for which copying a quantized B pays
inline constexpr int kRowBlock = 24;       // a multiple of every tile's rows

// Whether columns of A are copied. Panels read them repeatedly; the smaller the step, the more reads it takes
// to pay. Measured on a Zen 4.
template <class Scalar>
constexpr bool copies_a(const GemmShape& shape) {
  const int step = shape.a_col * static_cast<int>(sizeof(Scalar));
  return kLanes<Packet<Scalar>> != 1 && shape.a_row == 1 && shape.rows >= kMinRowsToCopy &&
         shape.depth >= kMinRowsToCopy && step >= kFarApart && shape.cols >= 128 &&
         1LL * step * shape.cols >= 512 * 1024;
}

// Whether a packet of columns of B lies in rows that can be read in place.
template <class P, class B>
constexpr bool is_in_rows(const GemmShape& shape) {
  return shape.b_col == 1 || kLanes<P> == 1 || kGathers<P, B>;
}
// Whether panels of B are copied: the columns of a transpose, rows that lie far apart, and elements that are
// dequantized once for many rows of A.
template <class P, class B>
constexpr bool copies_b(const GemmShape& shape) {
  if (!is_in_rows<P, B>(shape)) return true;
  const bool far_rows = shape.rows >= kMinRowsToCopy && shape.depth >= kMinRowsToCopy &&
                        shape.b_row * static_cast<int>(sizeof(ScalarOf<P>)) >= kFarApart;
  const bool widens =
      !std::is_same_v<B, const ScalarOf<P>*> && !kGathers<P, B> && shape.rows >= kWorthWidening;
  return kLanes<P> != 1 && shape.b_col == 1 && (far_rows || widens);
}

// Whether a product fetches: it has several tiles per panel, and its operands exceed the first-level cache.
template <class P>
constexpr bool fetches(int rows, int cols, int depth) {
  const long long scalars = 1LL * rows * depth + 1LL * depth * cols + 1LL * rows * cols;
  return kPrefetches && kLanes<P> > 1 && rows >= kRowBlock && depth >= kMinRowsToCopy &&
         scalars * static_cast<int>(sizeof(ScalarOf<P>)) > kFirstLevelBytes;
}

// All rows of one panel of columns.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void panel(const Scalar* a, const B& b, Scalar* c, int col, const Epilogue& epilogue, NoFetch) {
  constexpr int kTile = rows_of_tile<P>(shape), kRest = shape.rows % kTile, kWhole = shape.rows - kRest;
  for (int i = 0; i < kWhole; i += kTile) {
    tile<P, shape.with_rows(kTile)>(a + i * shape.a_row, b, c + i * shape.c_row, col, epilogue);
  }
  if constexpr (kRest > 0) {
    tile<P, shape.with_rows(kRest)>(a + kWhole * shape.a_row, b, c + kWhole * shape.c_row, col, epilogue);
  }
}
// Meanwhile fetches C's rows for a tile, A's rows for the tile after it, and a share of `next`, the lines of
// B after this panel. Such a panel is large, so the cost of a call does not matter.
template <class P, GemmShape shape, class Scalar, class B, class Epilogue, class Next>
[[gnu::noinline]] void panel(const Scalar* a, B b, Scalar* c, int col, Epilogue epilogue, Next next) {
  constexpr int kTile = rows_of_tile<P>(shape), kRest = shape.rows % kTile, kWhole = shape.rows - kRest,
                kParts = (shape.depth + kFetchSteps - 1) / kFetchSteps;
  for (int i = 0; i < kWhole; i += kTile) {
    const int fetched = i / kTile * kParts;
    const Lines<kTile, shape.depth, shape.a_row, Scalar> of_a{a + smaller(i + kTile, shape.rows - kTile) *
                                                                      shape.a_row};
    const Lines<kTile, shape.cols, shape.c_row, Scalar> of_c{c + i * shape.c_row};
    tile<P, shape.with_rows(kTile)>(
        a + i * shape.a_row, b, c + i * shape.c_row, col, epilogue, [&](int part) ATTUNE_INLINE_LAMBDA {
          if constexpr (shape.a_col == 1) of_a.template visit<kParts>(part, FetchLine<false>{});
          of_c.template visit<kParts>(part, FetchLine<true>{});
          next.template visit<kParts*(kWhole / kTile)>(fetched + part, FetchLine<false>{});
        });
  }
  if constexpr (kRest > 0) {
    panel<P, shape.with_rows(kRest)>(a + kWhole * shape.a_row, b, c + kWhole * shape.c_row, col, epilogue,
                                     NoFetch{});
  }
}

// The lines of B for one panel.
template <bool kFetches, GemmShape panel, class Scalar>
using LinesOf = std::conditional_t<
    !kFetches, NoFetch,
    std::conditional_t<panel.b_col == 1, Lines<panel.depth, panel.cols, panel.b_row, Scalar>,
                       Lines<panel.cols, panel.depth, panel.b_col, Scalar>>>;

// Copies the panel of B from column `col` into contiguous rows.
template <class P, GemmShape panel, class Scalar, class B>
ATTUNE_INLINE void copy_panel(const B& b, int col, Scalar* rows) {
  constexpr int kWidth = kLanes<P>;
  if constexpr (panel.b_col == 1) {
    for (int k = 0; k < panel.depth; ++k) {
      ATTUNE_UNROLL for (int n = 0; n < panel.cols; n += kWidth) {
        store(rows + k * panel.cols + n, load_row<P>(b, k * panel.b_row + col + n, k));
      }
    }
  } else {
    static_assert(Holds<(panel.b_row == 1)>, "attune::kernels::gemm: one stride of B must be 1");
    for (int n = 0; n < panel.cols; n += kWidth) {
      transpose_panel<P, panel.depth, panel.cols, panel.b_col>(b + (col + n) * panel.b_col, rows + n);
    }
  }
}

// Columns [kFrom, shape.cols) in panels of at most kMaxLanes lanes. The rest goes to one or more narrower
// packets.
template <int kFrom, int kMaxLanes, GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void panels(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kRest = shape.cols - kFrom;
  if constexpr (kRest > 0) {
    using P = Packet<Scalar, kMaxLanes>;
    constexpr int kWidth = kLanes<P>;
    if constexpr (kRest < kWidth && shape.cols > kWidth && kRest > kLanes<Packet<Scalar, kWidth / 2>> &&
                  kMayRepeat<Epilogue> && !kHasMve) {
      // One packet that begins earlier; columns that it shares with others are computed twice.
      panels<shape.cols - kWidth, kWidth, shape>(a, b, c, epilogue);
    } else if constexpr (kRest < kWidth) {
      panels<kFrom, kWidth / 2, shape>(a, b, c, epilogue);
    } else {
      // Copies keep their size.
      constexpr int kMax = most_packets<P>(is_in_rows<P, B>(shape) ? shape.rows : kFewRows);
      constexpr int kPackets = tile_packets(kMax, kRest / kWidth);
      // A rest smaller than a packet joins the last panel of few rows.
      constexpr bool kOverlaps = shape.rows < kFewRows && kWidth > 1 && shape.b_col == 1 && kRest > kWidth &&
                                 kRest % kWidth != 0 && kRest / kWidth < kMax;
      constexpr int kPanel = kOverlaps ? kRest : kPackets * kWidth;
      constexpr int kEnd = kFrom + kRest / kPanel * kPanel;
      constexpr bool kFetches = std::is_same_v<B, const Scalar*> && kWidth == kLanes<Packet<Scalar>> &&
                                fetches<P>(shape.rows, shape.cols, shape.depth);
      // After the last panel comes the first panel of other terms, or the memory after B: layers of a model
      // are adjacent, in the order in which forward reads them.
      using Next = LinesOf<kFetches, shape.with_cols(kPanel), Scalar>;
      for (int j = kFrom; j < kEnd; j += kPanel) {
        Next next;
        if constexpr (kFetches) {
          next.first = b + (j + kPanel < shape.cols ? (j + kPanel) * shape.b_col : shape.depth * shape.b_row);
        }
        if constexpr (copies_b<P, B>(shape)) {
          alignas(P) Array<Scalar, shape.depth * kPanel> rows;
          copy_panel<P, shape.with_cols(kPanel)>(b, j, rows);
          panel<P, shape.with_cols(kPanel).with_b(kPanel, 1)>(a, static_cast<const Scalar*>(rows), c + j, j,
                                                              epilogue, next);
        } else {
          panel<P, shape.with_cols(kPanel)>(a, b + j * shape.b_col, c + j, j, epilogue, next);
        }
      }
      panels<kEnd, kMaxLanes, shape>(a, b, c, epilogue);
    }
  }
}

// Copies a few rows of a transposed A side by side.
template <GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void copied_rows_gemm(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  alignas(Packet<Scalar>) Array<Scalar, shape.depth * shape.rows> columns;
  for (int k = 0; k < shape.depth; ++k) {
    for_each_packet<Scalar>(shape.rows, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      store(columns + k * shape.rows + i, load<P>(a + k * shape.a_col + i));
    });
    if constexpr (kPrefetches)
      Lines<1, shape.rows, 0, Scalar>{a + k * shape.a_col + shape.rows}.template visit<1>(0,
                                                                                          FetchLine<false>{});
  }
  panels<0, kAnyLanes, shape.with_a(1, shape.rows)>(static_cast<const Scalar*>(columns), b, c, epilogue);
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail
