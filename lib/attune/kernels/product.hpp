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
#pragma once

#include <utility>

#include <attune/kernels/arithmetic.hpp>
#include <attune/kernels/blas.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/tile_cortex_m.hpp>
#include <attune/kernels/tile_mve.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

inline constexpr int kDepthBlock = 192;

// ---- Epilogues: what happens to a finished sum. `c` points at the element, `col` is its column. ----

/// C = A·B
struct Assign {
  template <class P, class Scalar>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int) const {
    return sum;
  }
};

/// C += A·B
struct Accumulate {
  template <class P, class Scalar>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar* c, int) const {
    return add(load<P>(c), sum);
  }
};

/// C = alpha · A·B
template <class Scalar>
struct Scale {
  Scalar alpha;
  template <class P>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int) const {
    return multiply(sum, broadcast<P>(alpha));
  }
};

/// C = A·B + 1·bias, bias one row of N
template <class Scalar>
struct AddBias {
  const Scalar* bias;
  template <class P>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int col) const {
    return add(sum, load<P>(bias + col));
  }
};

namespace detail {

// The register block: kRows rows of kPackets packets. It must fit the register file with a packet of B and
// one of A.
template <class P>
constexpr int registers() {
#if defined(EIGEN_VECTORIZE_AVX512) || defined(__aarch64__)
  return 32;
#else
  return kIsScalar<P> ? 24 : 16;  // a Cortex-M FPU has 32 single registers, x86 and NEON 16 packets
#endif
}

template <class P>
constexpr int tile_packets(int packets) {
  constexpr int kMost = kIsScalar<P> ? 4 : kLanes<P> == 1 ? registers<P>() / 8 : registers<P>() == 32 ? 3 : 2;
  if (packets <= kMost) return packets;
  if (packets % kMost == 0) return kMost;
  return packets % (kMost - 1) == 0 && kMost > 2 ? kMost - 1 : kMost;
}

template <class P>
constexpr int tile_rows(int rows, int packets) {
  const int most = kLanes<P> == 1                                  ? 4
                   : (registers<P>() - packets - 1) / packets > 12 ? 12
                                                                   : (registers<P>() - packets - 1) / packets;
  if (rows <= most) return rows;
  for (int r = most; r * 3 >= most * 2; --r) {
    if (rows % r == 0) return r;
  }
  return most;
}

// c[kRows × kPackets·lanes] = epilogue(Σ_k a(i, k) · b(k, j)), `a` by strides, rows of `b` contiguous kBRow
// apart.
template <class P, int kRows, int kPackets, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class Epilogue>
ATTUNE_INLINE void tile(const Scalar* a, const Scalar* b, Scalar* c, int col, const Epilogue& epilogue) {
  constexpr int kWidth = kLanes<P>;
  static_assert(kBCol == 1 || kWidth == 1);
  Array<Array<P, kPackets>, kRows> sum;
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) sum[i][j] = broadcast<P>(Scalar(0));
  }
  for (int k = 0; k < kDepth; ++k) {
    Array<P, kPackets> row;
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) row[j] = load<P>(b + k * kBRow + j * kWidth * kBCol);
    ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
      const P value = broadcast<P>(a[i * kARow + k * kACol]);
      ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) sum[i][j] = multiply_add(value, row[j], sum[i][j]);
    }
  }
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) {
      Scalar* to = c + i * kCRow + j * kWidth;
      store(to, epilogue(sum[i][j], to, col + j * kWidth));
    }
  }
}

// Four scalars of each of lanes/4 rows: quad q is from[q · kStride …]. Inserting from memory costs no
// shuffle.
template <class P, int kStride>
ATTUNE_INLINE P load_quads(const float* from) {
#if defined(EIGEN_VECTORIZE_AVX512)
  if constexpr (kLanes<P> == 16) {
    P quads = _mm512_castps128_ps512(_mm_loadu_ps(from));
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(from + kStride), 1);
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(from + 2 * kStride), 2);
    return _mm512_insertf32x4(quads, _mm_loadu_ps(from + 3 * kStride), 3);
  }
#endif
#if defined(EIGEN_VECTORIZE_AVX)
  if constexpr (kLanes<P> == 8) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + kStride), 1);
  }
#endif
  if constexpr (kLanes<P> == 4) return load<P>(from);
}

// Of each pair of quads (a0 a1 a2 a3), (b0 b1 b2 b3): a[kFirst], b[kFirst], a[kSecond], b[kSecond], or
// pairwise.
template <int kFirst, int kSecond, bool kPairs, class P>
ATTUNE_INLINE P mix_quads(const P& a, const P& b) {
  constexpr int kWidth = kLanes<P>;
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) ATTUNE_INLINE_LAMBDA {
    constexpr auto kSource = [](int lane) {
      const int quad = lane / 4 * 4;
      const int place = lane % 4;
      if (kPairs) return quad + (place < 2 ? 0 : kWidth) + (place % 2 == 0 ? kFirst : kSecond);
      return quad + (place % 2 == 0 ? 0 : kWidth) + (place < 2 ? kFirst : kSecond);
    };
    return P(__builtin_shufflevector(a, b, kSource(kLane)...));
  }
  (std::make_integer_sequence<int, kWidth>{});
}

// to[k][n] = from[n][k] for the lanes n of a packet and k < kDepth; rows of `from` kFromRow apart, of `to`
// kToRow apart. Four k at a time: 4×4 blocks are transposed within the quads of four packets.
template <class P, int kDepth, int kToRow, int kFromRow, class Scalar>
ATTUNE_INLINE void transpose_panel(const Scalar* from, Scalar* to) {
  constexpr int kWidth = kLanes<P>;
  constexpr int kByFours = std::is_same_v<Scalar, float> && kWidth >= 4 ? kDepth / 4 * 4 : 0;
  if constexpr (kByFours > 0) {
    for (int k = 0; k < kByFours; k += 4) {
      const P row0 = load_quads<P, 4 * kFromRow>(from + k);
      const P row1 = load_quads<P, 4 * kFromRow>(from + k + kFromRow);
      const P row2 = load_quads<P, 4 * kFromRow>(from + k + 2 * kFromRow);
      const P row3 = load_quads<P, 4 * kFromRow>(from + k + 3 * kFromRow);
      const P low01 = mix_quads<0, 1, false>(row0, row1), high01 = mix_quads<2, 3, false>(row0, row1);
      const P low23 = mix_quads<0, 1, false>(row2, row3), high23 = mix_quads<2, 3, false>(row2, row3);
      store(to + k * kToRow, mix_quads<0, 1, true>(low01, low23));
      store(to + (k + 1) * kToRow, mix_quads<2, 3, true>(low01, low23));
      store(to + (k + 2) * kToRow, mix_quads<0, 1, true>(high01, high23));
      store(to + (k + 3) * kToRow, mix_quads<2, 3, true>(high01, high23));
    }
  }
  for (int k = kByFours; k < kDepth; ++k) {
    for (int n = 0; n < kWidth; ++n) to[k * kToRow + n] = from[n * kFromRow + k];
  }
}

// A step of this many bytes from one k to the next wastes the cache: neighbouring k meet in the same few
// sets. Operands that step so far are copied first, kRowBlock rows of A and a panel of B at a time, where
// enough work follows to pay.
inline constexpr int kFarApart = 1024;
inline constexpr int kWorthCopying = 32;
inline constexpr int kRowBlock = 24;  // a multiple of every tile's rows

// All rows of one panel of kPackets packets of columns.
template <class P, int kPackets, int kRows, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class Epilogue>
ATTUNE_INLINE void panel(const Scalar* a, const Scalar* b, Scalar* c, int col, const Epilogue& epilogue) {
  constexpr int kTile = tile_rows<P>(kRows, kPackets);
  constexpr int kWhole = kRows / kTile * kTile;
  for (int i = 0; i < kWhole; i += kTile) {
    tile<P, kTile, kPackets, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a + i * kARow, b, c + i * kCRow, col,
                                                                        epilogue);
  }
  if constexpr (kWhole < kRows) {
    tile<P, kRows - kWhole, kPackets, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
        a + kWhole * kARow, b, c + kWhole * kCRow, col, epilogue);
  }
}

// Columns [kFrom, kCols) in panels of at most kMaxLanes lanes, the rest in narrower packets.
template <int kFrom, int kMaxLanes, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow,
          int kBCol, int kCRow, class Scalar, class Epilogue>
ATTUNE_INLINE void panels(const Scalar* a, const Scalar* b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kRest = kCols - kFrom;
  if constexpr (kRest > 0) {
    using P = Packet<Scalar, kMaxLanes>;
    constexpr int kWidth = kLanes<P>;
    if constexpr (kRest < kWidth) {
      panels<kFrom, kWidth / 2, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    } else {
      constexpr int kPackets = tile_packets<P>(kRest / kWidth);
      constexpr int kPanel = kPackets * kWidth;
      constexpr int kEnd = kFrom + kRest / kPanel * kPanel;
      constexpr bool kCopyB = kWidth > 1 && kBCol == 1 && kRows >= kWorthCopying && kDepth >= kWorthCopying &&
                              kBRow * static_cast<int>(sizeof(Scalar)) >= kFarApart;
      for (int j = kFrom; j < kEnd; j += kPanel) {
        if constexpr (kCopyB) {
          alignas(P) Array<Scalar, kDepth * kPanel> rows;
          for (int k = 0; k < kDepth; ++k) {
            ATTUNE_UNROLL for (int n = 0; n < kPanel; n += kWidth) {
              store(rows + k * kPanel + n, load<P>(b + k * kBRow + j + n));
            }
          }
          panel<P, kPackets, kRows, kDepth, kARow, kACol, kPanel, 1, kCRow>(
              a, static_cast<const Scalar*>(rows), c + j, j, epilogue);
        } else if constexpr (kBCol == 1 || kWidth == 1) {
          panel<P, kPackets, kRows, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b + j * kBCol, c + j, j,
                                                                               epilogue);
        } else {
          static_assert(kBRow == 1, "attune::kernels::product: one stride of B must be 1");
          alignas(P) Array<Scalar, kDepth * kPanel> rows;
          for (int n = 0; n < kPanel; n += kWidth)
            transpose_panel<P, kDepth, kPanel, kBCol>(b + (j + n) * kBCol, rows + n);
          panel<P, kPackets, kRows, kDepth, kARow, kACol, kPanel, 1, kCRow>(
              a, static_cast<const Scalar*>(rows), c + j, j, epilogue);
        }
      }
      panels<kEnd, kMaxLanes, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    }
  }
}

// A few rows of a transposed A, whose columns are kACol apart, copied side by side.
template <int kRows, int kCols, int kDepth, int kACol, int kBRow, int kBCol, int kCRow, class Scalar,
          class Epilogue>
ATTUNE_INLINE void copied_rows_product(const Scalar* a, const Scalar* b, Scalar* c,
                                       const Epilogue& epilogue) {
  alignas(Packet<Scalar>) Array<Scalar, kDepth * kRows> columns;
  for (int k = 0; k < kDepth; ++k) {
    for_each_packet<Scalar>(kRows, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      store(columns + k * kRows + i, load<P>(a + k * kACol + i));
    });
  }
  panels<0, 1 << 10, kRows, kCols, kDepth, 1, kRows, kBRow, kBCol, kCRow>(static_cast<const Scalar*>(columns),
                                                                          b, c, epilogue);
}

// One block of k.
template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class Epilogue>
ATTUNE_INLINE void block_product(const Scalar* a, const Scalar* b, Scalar* c, const Epilogue& epilogue) {
  constexpr int kWidest = 1 << 10;
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float> &&
                fits_tile(kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol)) {
    constexpr int kTiledRows = kRows / kTileSide * kTileSide, kTiledCols = kCols / kTileSide * kTileSide;
    constexpr const TileGrid& kGrid =
        kTileGrid<kTiledRows, kTiledCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>;
    if constexpr (std::is_empty_v<Epilogue>) {
      tiles_product<Epilogue>(a, b, c, kGrid);
    } else {
      tiles_product<Epilogue>(a, b, c, kGrid, epilogue);
    }
    // The rest, if any, is the portable block's.
    if constexpr (kTiledRows < kRows) {
      panels<0, kWidest, kRows - kTiledRows, kTiledCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          a + kTiledRows * kARow, b, c + kTiledRows * kCRow, epilogue);
    }
    panels<kTiledCols, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    return;
  }
#elif ATTUNE_MVE && ATTUNE_FUSED
  if constexpr (std::is_same_v<Scalar, float> && fits_mve(kCols, kARow, kACol, kBRow, kBCol)) {
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
          class Scalar, class Epilogue>
[[gnu::noinline]] void product(const Scalar* a, const Scalar* b, Scalar* c, Epilogue epilogue) {
  if constexpr (kDepth <= kDepthBlock) {
    block_product<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
  } else {
    static_assert(std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>);
    block_product<kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    int k = kDepthBlock;
    for (; k + kDepthBlock <= kDepth; k += kDepthBlock) {
      block_product<kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(
          a + k * kACol, b + k * kBRow, c, Accumulate{});
    }
    if constexpr (kDepth % kDepthBlock != 0) {
      block_product<kRows, kCols, kDepth % kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(
          a + k * kACol, b + k * kBRow, c, Accumulate{});
    }
  }
}

}  // namespace detail

/// C = epilogue(A·B) of three MatrixViews. A and B by any strides (`x.transpose()`, `x.columns<n>(j)`), rows
/// of C contiguous; C may not overlap A or B.
template <class A, class B, class C, class Epilogue = Assign>
ATTUNE_INLINE void product(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
  using Scalar = typename C::Scalar;
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows,
                "attune::kernels::product: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  static_assert(C::col_stride == 1,
                "attune::kernels::product: C must be row-major; swap and transpose the operands");
  constexpr bool kSimple = std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>;
  constexpr bool kBlas = goes_to_blas(C::rows, C::cols, A::cols);
  // A sum of several blocks is finished first, then given to its epilogue in a pass of its own.
  constexpr bool kEpilogueLast = !kSimple && (A::cols > kDepthBlock || kBlas);
  std::conditional_t<kEpilogueLast, Assign, Epilogue> during{};
  if constexpr (!kEpilogueLast) during = epilogue;
  if constexpr (kBlas) {
#if ATTUNE_BLAS
    detail::blas_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                         B::col_stride, C::row_stride, Scalar>(a.data, b.data, c.data,
                                                               std::is_same_v<Epilogue, Accumulate> ? 1 : 0);
#endif
  } else {
#if ATTUNE_CORTEX_M_FPU
    // Whole tiles are a call of their own.
    if constexpr (std::is_same_v<Scalar, float> && A::cols <= kDepthBlock &&
                  C::rows % detail::kTileSide == 0 && C::cols % detail::kTileSide == 0 &&
                  detail::fits_tile(C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                                    B::col_stride)) {
      detail::block_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                            B::col_stride, C::row_stride, Scalar>(a.data, b.data, c.data, during);
      return;
    }
#endif
    detail::product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride, B::col_stride,
                    C::row_stride, Scalar>(a.data, b.data, c.data, during);
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

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
