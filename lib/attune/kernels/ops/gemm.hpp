// Matrix products: every one in the library goes through here.
//
//   C[M, N] = epilogue(A[M, K] · B[K, N])
//
// A block of k goes to the kernel that a target has for its shape, or through portable/gemm_panels.hpp.
//
// Every element is the sum over k in rising order. Longer sums are made in blocks of kDepthBlock: each is
// summed from zero, then added to C, block after block. That order does not depend on the packet width, so a
// product has the same bits on every target.
//
// B may be of narrow elements, widened where it is read: simd/dequantize.hpp.
#pragma once

#include <attune/kernels/cortex_m/gemm_tile.hpp>
#include <attune/kernels/cortex_m/quantized_gemm_panel.hpp>
#include <attune/kernels/cortex_m/quantized_gemm_tile.hpp>
#include <attune/kernels/cortex_m/quantized_skinny_gemm.hpp>
#include <attune/kernels/cortex_m/skinny_gemm.hpp>
#include <attune/kernels/cortex_m/wide_gemm_tile.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/mve/gemm_tile.hpp>
#include <attune/kernels/portable/blas.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/portable/gemm_panels.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/dequantize.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

inline constexpr int kDepthBlock = 192;

namespace detail {

#if ATTUNE_CORTEX_M_FPU

template <class Epilogue>
constexpr TileShape tile_shape(int rows, int cols, int a_col, int b_row, int b_col) {
  return !std::is_same_v<Epilogue, Continue> && fits_wide_tile(rows, cols, a_col, b_row, b_col)
             ? TileShape::kWide
             : TileShape::kSquare;
}

template <TileShape shape, int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol,
          int kCRow>
consteval const auto& grid_of() {
  if constexpr (shape == TileShape::kWide) {
    return kWideGrid<kRows, kCols, kDepth, kARow, kBRow, kBCol, kCRow>;
  } else {
    return kTileGrid<kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>;
  }
}

// B in 8 or 16 bits: rows by eights, and those left by a four or in panels. Three rows and less, columns that
// fill no block of these, and a single one behind panels are the portable block's.
template <int kRows, int kCols, int kDepth, int kARow, int kBRow, int kBCol, int kCRow, class B,
          class Epilogue>
ATTUNE_INLINE void narrow_product(const float* a, const B& b, float* c, const Epilogue& epilogue) {
  constexpr int kEights = eight_rows(kRows, std::is_same_v<B, ScaledRows<Int8, float>>),
                kLeft = kRows - kEights;
  const auto columns_from = [&]<int kFrom, int kFirstRow, int kCount>() ATTUNE_INLINE_LAMBDA {
    panels<kFrom, 1, kCount, kCols, kDepth, kARow, 1, kBRow, kBCol, kCRow>(a + kFirstRow * kARow, b,
                                                                           c + kFirstRow * kCRow, epilogue);
  };
  const auto tiles = [&]<bool kSmall, int kFirstRow, int kCount>() ATTUNE_INLINE_LAMBDA {
    constexpr int kBlockCols = kSmall ? kTileSide : kNarrowCols, kTiledCols = kCols / kBlockCols * kBlockCols;
    narrow_tiles_product<kSmall>(
        a + kFirstRow * kARow, elements_of(b), c + kFirstRow * kCRow,
        kNarrowGrid<B, kSmall, kCount, kTiledCols, kDepth, kARow, kBRow, kBCol, kCRow>, scales_of(b),
        epilogue);
    columns_from.template operator()<kTiledCols, kFirstRow, kCount>();
  };
  if constexpr (kEights > 0) tiles.template operator()<false, 0, kEights>();
  if constexpr (kLeft == kTileSide) {
    tiles.template operator()<true, kEights, kTileSide>();
  } else if constexpr (kLeft > kTileSide) {
    constexpr int kRest = kCols % kTileSide, kColsAgain = kRest > 1 ? kRest : 0;
    Array<float, panel_sums(kLeft)> sums;
    narrow_panels_product<kColsAgain>(a + kEights * kARow, elements_of(b), c + kEights * kCRow,
                                      kPanelGrid<B, kLeft, kCols, kDepth, kARow, kBRow, kBCol, kCRow>,
                                      PanelMemory{scales_of(b), sums}, epilogue);
    columns_from.template operator()<kCols - kRest + kColsAgain, kEights, kLeft>();
  } else if constexpr (kLeft > 0) {
    columns_from.template operator()<0, kEights, kLeft>();
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
    constexpr const RowGrid& kGrid =
        kRowGrid<kRows, kCols, kDepth, kARow, kBRow, kBCol, kCRow, kMayRepeat<Epilogue>>;
    return few_rows_product(a, b, c, kGrid, epilogue);
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_narrow_row<B>(kRows, kCols, kDepth, kACol, kBRow)) {
    using Element = std::remove_cvref_t<decltype(*elements_of(b))>;
    return few_rows_product(a, b, c, kNarrowRowGrid<Element, kCols, kDepth, kBCol>, epilogue);
  }
  if constexpr (std::is_same_v<B, const float*> &&
                fits_tile(kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol)) {
    constexpr TileShape kTile = tile_shape<Epilogue>(kRows, kCols, kACol, kBRow, kBCol);
    constexpr int kTiledRows = tiled(kTile, kRows, kCols).rows, kTiledCols = tiled(kTile, kRows, kCols).cols;
    constexpr const auto& kGrid =
        grid_of<kTile, kTiledRows, kTiledCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>();
    if constexpr (std::is_empty_v<Epilogue>) {
      tiles_product<kTile, Epilogue>(a, b, c, kGrid);
    } else {
      tiles_product<kTile, Epilogue>(a, b, c, kGrid, epilogue);
    }
    if constexpr (kTiledRows < kRows) {
      panels<0, kWidest, kRows - kTiledRows, kTiledCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(
          a + kTiledRows * kARow, b, c + kTiledRows * kCRow, epilogue);
    }
    panels<kTiledCols, kWidest, kRows, kCols, kDepth, kARow, kACol, kBRow, kBCol, kCRow>(a, b, c, epilogue);
    return;
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_narrow<B>(kRows, kCols, kDepth, kACol, kBRow, kBCol)) {
    return narrow_product<kRows, kCols, kDepth, kARow, kBRow, kBCol, kCRow>(a, b, c, epilogue);
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
  constexpr int kStepOfA = kACol * static_cast<int>(sizeof(Scalar));
  constexpr bool kCopyA = kLanes < Widest >> 1 && kARow == 1 && kRows >= kWorthCopying &&
                          kDepth >= kWorthCopying && worth_copying_a(kStepOfA, kCols);
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
          (tiled(kTile, C::rows, C::cols).rows == C::rows && tiled(kTile, C::rows, C::cols).cols == C::cols &&
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

// Sums that go on: portable blocks and cortex_m/gemm_tile.hpp's begin with what is there.
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
  requires(!kIsPart<A> && !kIsPart<B> && !kIsPart<C>)
ATTUNE_INLINE void product(const A& a, const B& b, const C& c, Continue) {
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows && C::col_stride == 1);
  detail::continued_product<C::rows, C::cols, A::cols, A::row_stride, A::col_stride, B::row_stride,
                            B::col_stride, C::row_stride>(a.data, b.data, c.data);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
