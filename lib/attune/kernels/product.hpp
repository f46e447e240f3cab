// Matrix products: every one in the library goes through here.
//
//   C[M, N] = epilogue(A[M, K] · B[K, N])
//
// A register block of kTileRows × kTilePackets packets of C stays in registers while k runs: a column of A is broadcast,
// a row of B is read in packets (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008,
// without packing: operands are small and their strides are compile-time). A transposed A only swaps strides; the
// panels of a transposed B are transposed into a small buffer where packets need their rows contiguous.
//
// Every element is the sum over k in rising order, in blocks of kDepthBlock that are summed one after the other. That
// order does not depend on the packet width, so a product has the same bits on every target.
#pragma once

#include <attune/kernels/arithmetic.hpp>
#include <attune/tensor.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

inline constexpr int kDepthBlock = 256;

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

// The register block: kRows rows of kPackets packets. It must fit the register file with a packet of B and one of A.
template <class P>
constexpr int registers() {
#if defined(EIGEN_VECTORIZE_AVX512) || defined(__aarch64__)
  return 32;
#else
  return kLanes<P> == 1 ? 24 : 16;  // a Cortex-M FPU has 32 single registers, x86 and NEON 16 packets
#endif
}

template <class P>
constexpr int tile_packets(int packets) {
  constexpr int kMost = kLanes<P> == 1 ? 4 : registers<P>() == 32 ? 3 : 2;
  if (packets <= kMost) return packets;
  if (packets % kMost == 0) return kMost;
  return packets % (kMost - 1) == 0 && kMost > 2 ? kMost - 1 : kMost;
}

template <class P>
constexpr int tile_rows(int rows, int packets) {
  const int most = kLanes<P> == 1 ? 4 : (registers<P>() - packets - 1) / packets > 12 ? 12 : (registers<P>() - packets - 1) / packets;
  if (rows <= most) return rows;
  for (int r = most; r * 3 >= most * 2; --r) {
    if (rows % r == 0) return r;
  }
  return most;
}

// c[kRows × kPackets·lanes] = epilogue(Σ_k a(i, k) · b(k, j)), `a` by strides, rows of `b` contiguous kBRow apart.
template <class P, int kRows, int kPackets, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow, class Scalar,
          class Epilogue>
ATTUNE_INLINE void tile(const Scalar* a, const Scalar* b, Scalar* c, int col, const Epilogue& epilogue) {
  constexpr int kWidth = kLanes<P>;
  static_assert(kBCol == 1 || kWidth == 1);
  P sum[kRows][kPackets];
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) {
    ATTUNE_UNROLL for (int j = 0; j < kPackets; ++j) sum[i][j] = broadcast<P>(Scalar(0));
  }
  for (int k = 0; k < kDepth; ++k) {
    P row[kPackets];
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

// All rows of one panel of kPackets packets of columns.
template <class P, int kPackets, int kRows, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow, class Scalar,
          class Epilogue>
ATTUNE_INLINE void panel(const Scalar* a, const Scalar* b, Scalar* c, int col, const Epilogue& epilogue) {
  constexpr int kTile = tile_rows<P>(kRows, kPackets);
  constexpr int kWhole = kRows / kTile * kTile;
  for (int i = 0; i < kWhole; i += kTile) {
    tile<P, kTile, kPackets, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a + i * kARow, b, c + i * kCRow, col, epilogue);
  }
  if constexpr (kWhole < kRows) {
    tile<P, kRows - kWhole, kPackets, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a + kWhole * kARow, b,
                                                                                c + kWhole * kCRow, col, epilogue);
  }
}

// Columns [kFrom, kCols) in panels of at most kMaxLanes lanes, the rest in narrower packets.
template <int kFrom, int kMaxLanes, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow,
          class Scalar, class Epilogue>
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
      for (int j = kFrom; j < kEnd; j += kPanel) {
        if constexpr (kBCol == 1 || kWidth == 1) {
          panel<P, kPackets, kRows, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b + j * kBCol, c + j, j, epilogue);
        } else {
          Scalar transposed[kDepth * kPanel];
          for (int n = 0; n < kPanel; ++n) {
            for (int k = 0; k < kDepth; ++k) transposed[k * kPanel + n] = b[k * kBRow + (j + n) * kBCol];
          }
          panel<P, kPackets, kRows, kDepth, kARow, kACol, kPanel, 1, kCRow>(a, static_cast<const Scalar*>(transposed),
                                                                           c + j, j, epilogue);
        }
      }
      panels<kEnd, kMaxLanes, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    }
  }
}

template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow, class Scalar, class Epilogue>
[[gnu::noinline]] void product(const Scalar* a, const Scalar* b, Scalar* c, Epilogue epilogue) {
  constexpr int kWidest = 1 << 10;
  if constexpr (kDepth <= kDepthBlock) {
    panels<0, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
  } else {
    static_assert(std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>);
    panels<0, kWidest, kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    int k = kDepthBlock;
    for (; k + kDepthBlock <= kDepth; k += kDepthBlock) {
      panels<0, kWidest, kRows, kCols, kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(a + k * kACol, b + k * kBRow, c,
                                                                                      Accumulate{});
    }
    if constexpr (kDepth % kDepthBlock != 0) {
      panels<0, kWidest, kRows, kCols, kDepth % kDepthBlock, kARow, kACol, kBRow, kBCol, kCRow>(
          a + k * kACol, b + k * kBRow, c, Accumulate{});
    }
  }
}

}  // namespace detail

/// C = epilogue(A·B) of three MatrixViews. A and B by any strides (`x.transpose()`, `x.columns<n>(j)`), rows of C
/// contiguous; C may not overlap A or B.
template <class A, class B, class C, class Epilogue = Assign>
ATTUNE_INLINE void product(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
  using Scalar = typename C::Scalar;
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows,
                "attune::kernels::product: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  static_assert(C::col_stride == 1, "attune::kernels::product: C must be row-major; swap and transpose the operands");
  constexpr bool kEpilogueLast =
      A::cols > kDepthBlock && !std::is_same_v<Epilogue, Assign> && !std::is_same_v<Epilogue, Accumulate>;
  std::conditional_t<kEpilogueLast, Assign, Epilogue> during{};
  if constexpr (!kEpilogueLast) during = epilogue;
  detail::product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride, B::col_stride, C::row_stride,
                  Scalar>(a.data, b.data, c.data, during);
  if constexpr (kEpilogueLast) {
    // A sum of several blocks is finished first, then given to its epilogue in a pass of its own.
    for (int i = 0; i < C::rows; ++i) {
      Scalar* row = c.data + i * C::row_stride;
      for_each_packet<Scalar>(C::cols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        store(row + j, epilogue(load<P>(row + j), row + j, j));
      });
    }
  }
}

}  // namespace attune::kernels
