// Products of parts of matrices, with rows, columns and terms counted at run time.
//
// Every element is the sum of gemm() over the used terms, with the same bits as a product whose other terms
// are zero. A register block writes whole rows and columns. It can therefore overwrite C beyond the used
// part; the values there are undefined.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/gemm.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

/// The used part of a product.
struct UsedExtents {
  int rows, cols, depth;
};

#if ATTUNE_CORTEX_M_FPU

// A whole product: its grid for an even number of terms, and the inner loop for an odd number.
struct PartialGrid : TileGrid {
  void (*odd)();
};

// kAnyDepth: some terms may be unused.
template <GemmShape shape, bool kAnyDepth>
inline constexpr PartialGrid kPartialGrid = [] {
  constexpr int kEven = kAnyDepth ? shape.depth / 2 * 2 : shape.depth, kOdd = kAnyDepth ? kEven + 1 : kEven;
  return PartialGrid{tile_grid(shape.with_depth(kEven)), tile_grid(shape.with_depth(kOdd)).tile};
}();

// The grid of the used part, in whole tiles if there is room for them.
[[gnu::noinline]] inline void take_part(const PartialGrid& of, const UsedExtents& used, TileGrid& grid) {
  grid = of;
  grid.pairs = used.depth / 2;
  if (used.depth % 2 != 0) grid.tile = of.odd;
  const int rows = (used.rows + kTileSide - 1) / kTileSide, cols = (used.cols + kTileSide - 1) & -kTileSide;
  if (rows < of.rows) grid.rows = static_cast<std::uint16_t>(rows);
  if (cols < of.cols) grid.cols = static_cast<std::uint16_t>(cols);
}

// Elements outside of whole tiles, from (`row`, `col`) on.
template <class Epilogue>
[[gnu::noinline]] void partial_gemm_rest(const float* a, const float* b, float* c, const TileGrid& grid,
                                         int a_row, int b_col, UsedExtents used, int row, int col,
                                         const Epilogue& epilogue) {
  const int a_col = a_row == 1 ? grid.a_stride / 4 : 1, b_row = b_col == 1 ? grid.b_stride / 4 : 1;
  for (int i = row; i < used.rows; ++i) {
    for (int j = col; j < used.cols; ++j) {
      float* to = c + i * (grid.c_stride / 4) + j;
      float sum = std::is_same_v<Epilogue, Continue> ? *to : 0;
      for (int k = 0; k < used.depth; ++k) {
        sum = add_multiple(a[i * a_row + k * a_col], b[k * b_row + j * b_col], sum);
      }
      *to = epilogue(sum, static_cast<const float*>(to), j);
    }
  }
}

// A partly used grid.
template <class Epilogue, class... State>
[[gnu::noinline]] void partial_gemm_tiles(const float* a, const float* b, float* c, const PartialGrid& of,
                                          const UsedExtents& used, State... state) {
  TileGrid grid;
  take_part(of, used, grid);
  tiles_product<TileShape::kSquare, Epilogue>(a, b, c, grid, state...);
}

#endif

// All rows of one panel of columns, with rows and terms counted at run time.
template <class P, GemmShape shape, class Scalar, class Epilogue>
ATTUNE_INLINE void partial_panel(const Scalar* a, const Scalar* b, Scalar* c, int col, UsedExtents used,
                                 const Epilogue& epilogue) {
  constexpr int kTile = smaller(shape.rows, shape.cols > kLanes<P> ? 4 : 6);
  constexpr int kWhole = shape.rows / kTile * kTile;
  int i = 0;
  for (; i < kWhole && i < used.rows; i += kTile) {
    tile<P, shape.with_rows(kTile)>(a + i * shape.a_row, b, c + i * shape.c_row, col, epilogue, NoFetch{},
                                    used.depth);
  }
  if constexpr (kWhole < shape.rows) {
    if (i < used.rows) {
      tile<P, shape.with_rows(shape.rows - kWhole)>(a + i * shape.a_row, b, c + i * shape.c_row, col,
                                                    epilogue, NoFetch{}, used.depth);
    }
  }
}

// Columns from kFrom on, in panels of at most kMaxLanes lanes, the rest in narrower packets.
template <int kFrom, int kMaxLanes, GemmShape shape, class Scalar, class Epilogue>
ATTUNE_INLINE void partial_panels(const Scalar* a, const Scalar* b, Scalar* c, UsedExtents used,
                                  const Epilogue& epilogue) {
  using P = Packet<Scalar, kMaxLanes>;
  constexpr int kWidth = kLanes<P>, kRest = shape.cols - kFrom;
  if constexpr (kRest > 0 && kRest < kWidth) {
    partial_panels<kFrom, kWidth / 2, shape>(a, b, c, used, epilogue);
  } else if constexpr (kRest > 0) {
    constexpr int kPackets = smaller(kRest / kWidth, 2), kPanel = kPackets * kWidth;
    constexpr int kEnd = kFrom + kRest / kPanel * kPanel;
    constexpr GemmShape kOfPanel = shape.with_cols(kPanel);
    for (int j = kFrom; j < kEnd && j < used.cols; j += kPanel) {
      if constexpr (shape.b_col == 1) {
        partial_panel<P, kOfPanel>(a, b + j, c + j, j, used, epilogue);
      } else {
        static_assert(Holds<(shape.b_row == 1)>, "attune::kernels::gemm: one stride of B must be 1");
        alignas(P) Array<Scalar, shape.depth * kPanel> rows;
        for (int n = 0; n < kPanel; n += kWidth) {
          transpose_panel<P, shape.depth, kPanel, shape.b_col>(b + (j + n) * shape.b_col, rows + n);
        }
        partial_panel<P, kOfPanel.with_b(kPanel, 1)>(a, static_cast<const Scalar*>(rows), c + j, j, used,
                                                     epilogue);
      }
    }
    partial_panels<kEnd, kMaxLanes, shape>(a, b, c, used, epilogue);
  }
}

template <GemmShape shape, class Scalar, class Epilogue>
[[gnu::noinline]] void portable_partial_gemm(const Scalar* a, const Scalar* b, Scalar* c,
                                             const UsedExtents& used, Epilogue epilogue) {
  partial_panels<0, kAnyLanes, shape>(a, b, c, used, epilogue);
}

// At most kDepthBlock terms. shape.depth is the largest number; kAnyDepth: there may be fewer.
template <GemmShape shape, bool kAnyDepth, class Scalar, class Epilogue>
ATTUNE_INLINE void partial_gemm_block(const Scalar* a, const Scalar* b, Scalar* c, const UsedExtents& used,
                                      const Epilogue& epilogue) {
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float> && fits_tile(shape)) {
    const PartialGrid& all = kPartialGrid<shape, kAnyDepth>;
    if constexpr (std::is_empty_v<Epilogue>) {
      partial_gemm_tiles<Epilogue>(a, b, c, all, used);
    } else {
      partial_gemm_tiles<Epilogue>(a, b, c, all, used, epilogue);
    }
    // The rest, if any.
    constexpr int kTiledRows = shape.rows / kTileSide * kTileSide;
    constexpr int kTiledCols = shape.cols / kTileSide * kTileSide;
    if constexpr (kTiledCols < shape.cols) {
      const UsedExtents beside{smaller(used.rows, kTiledRows), used.cols, used.depth};
      partial_gemm_rest(a, b, c, all, shape.a_row, shape.b_col, beside, 0, kTiledCols, epilogue);
    }
    if constexpr (kTiledRows < shape.rows) {
      if (used.rows > kTiledRows) {
        partial_gemm_rest(a, b, c, all, shape.a_row, shape.b_col, used, kTiledRows, 0, epilogue);
      }
    }
    return;
  }
#endif
  portable_partial_gemm<shape>(a, b, c, used, epilogue);
}

template <GemmShape shape, class Scalar, class Epilogue>
[[gnu::noinline]] void long_partial_gemm(const Scalar* a, const Scalar* b, Scalar* c, UsedExtents used,
                                         Epilogue epilogue) {
  const auto block = [&]<int kTerms>(int k, const auto& sum) ATTUNE_INLINE_LAMBDA {
    partial_gemm_block<shape.with_depth(kTerms), true>(
        a + k * shape.a_col, b + k * shape.b_row, c, {used.rows, used.cols, smaller(used.depth - k, kTerms)},
        sum);
  };
  // Blocks after the first are added; any epilogue that is not a sum comes last.
  constexpr bool kLast = !AddsUp<Epilogue>;
  constexpr int kRest = shape.depth % kDepthBlock, kWhole = shape.depth - kRest;
  if constexpr (kLast) {
    block.template operator()<kDepthBlock>(0, Assign{});
  } else {
    block.template operator()<kDepthBlock>(0, epilogue);
  }
  for (int k = kDepthBlock; k < kWhole && k < used.depth; k += kDepthBlock) {
    block.template operator()<kDepthBlock>(k, Accumulate{});
  }
  if constexpr (kRest > 0) {
    if (kWhole < used.depth) block.template operator()<kRest>(kWhole, Accumulate{});
  }
  if constexpr (kLast) {
    for (int i = 0; i < used.rows; ++i) {
      for (int j = 0; j < shape.cols; ++j) {
        Scalar* to = c + i * shape.c_row + j;
        *to = epilogue(*to, static_cast<const Scalar*>(to), j);
      }
    }
  }
}

template <class A, class B, class C>
[[nodiscard]] constexpr UsedExtents used_extents(const A& a, const B& b, const C& c) {
  return {smaller<int>(used_rows(a), used_rows(c)), smaller<int>(used_cols(b), used_cols(c)),
          smaller<int>(used_cols(a), used_rows(b))};
}

}  // namespace detail

/// C = epilogue(A·B), with a PartView among the three. The used rows, columns and terms are those common to
/// all. With Continue, at most kDepthBlock terms. For a B in 8 or 16 bits, all rows.
template <class A, class B, class C, class Epilogue = Assign>
  requires(kIsPart<A> || kIsPart<B> || kIsPart<C>)
ATTUNE_INLINE void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
  using Scalar = typename C::Scalar;
  static_assert(
      detail::Holds<(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows && C::col_stride == 1)>,
      "attune::kernels::gemm: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  if constexpr (detail::IsQuantized<B>) {
    gemm(view(a), b, view(c), epilogue);
  } else if constexpr (!std::is_same_v<std::remove_const_t<typename B::Scalar>, Scalar>) {
    // Plain numbers times lanes (simd/lanes.hpp): some rows at a time.
    constexpr int kSome = smaller(C::rows, 4), kRest = C::rows % kSome;
    const auto some = [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      gemm(view(a).template rows_at<count>(first), b, view(c).template rows_at<count>(first), epilogue);
    };
    const int rows = smaller<int>(used_rows(a), used_rows(c));
    for (int first = 0; first < C::rows - kRest && first < rows; first += kSome) {
      some.template operator()<kSome>(first);
    }
    if constexpr (kRest > 0) {
      if (C::rows - kRest < rows) some.template operator()<kRest>(C::rows - kRest);
    }
  } else {
    const auto used = detail::used_extents(a, b, c);
    constexpr GemmShape kGemm = kGemmShape<A, B, C>;
    if constexpr (A::cols > kDepthBlock) {
      detail::long_partial_gemm<kGemm, Scalar>(a.data, b.data, c.data, used, epilogue);
    } else {
      constexpr bool kAnyDepth =
          !(std::is_empty_v<decltype(used_cols(a))> && std::is_empty_v<decltype(used_rows(b))>);
      detail::partial_gemm_block<kGemm, kAnyDepth, Scalar>(a.data, b.data, c.data, used, epilogue);
    }
  }
}

/// Whether the used part of a matrix is finite.
template <class View, class Rows, class Cols>
[[nodiscard]] bool finite(const PartView<View, Rows, Cols>& part) {
  using Scalar = std::remove_const_t<typename View::Scalar>;
  static_assert(View::col_stride == 1);
  if (View::row_stride == part.used_cols) return finite<Scalar>(part.used_rows * View::row_stride, part.data);
  for (int i = 0; i < part.used_rows; ++i) {
    if (!finite<Scalar>(part.used_cols, part.data + i * View::row_stride)) return false;
  }
  return true;
}

}  // namespace ATTUNE_NAMESPACE::kernels
