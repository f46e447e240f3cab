// Matrix products: all products of the library go through here.
//
//   C[M, N] = epilogue(A[M, K] · B[K, N])
//
// Each block of k runs in the target's kernel for its shape, or in portable/gemm_panels.hpp.
//
// Every element is the sum over k in rising order. Longer sums use blocks of kDepthBlock: each block is
// summed from zero, then added to C, block after block. This order does not depend on the packet width, so a
// product has the same bits on every target.
//
// B may have 8-bit or 16-bit elements, which are converted as they are read: simd/dequantize.hpp.
#pragma once

#include <attune/kernels/cortex_m/few_terms_gemm.hpp>
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
#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/dequantize.hpp>

namespace ATTUNE_NAMESPACE::kernels {

inline constexpr int kDepthBlock = 192;

namespace detail {

#if ATTUNE_CORTEX_M_FPU

template <class Epilogue>
constexpr TileShape tile_shape(const GemmShape& shape) {
  return !std::is_same_v<Epilogue, Continue> && fits_wide_tile(shape) ? TileShape::kWide : TileShape::kSquare;
}

template <TileShape kTile, GemmShape shape>
inline constexpr const auto& kGridOf = kTileGrid<shape>;
template <GemmShape shape>
inline constexpr const auto& kGridOf<TileShape::kWide, shape> = kWideGrid<shape>;

// The rest of C beside kRows by kCols elements in blocks: rows below, then columns to the right.
template <int kRows, int kCols, GemmShape shape, class Epilogue>
ATTUNE_INLINE void beside_blocks(const float* a, const float* b, float* c, const Epilogue& epilogue) {
  if constexpr (kRows < shape.rows) {
    panels<0, kAnyLanes, shape.with_extents(shape.rows - kRows, kCols)>(a + kRows * shape.a_row, b,
                                                                        c + kRows * shape.c_row, epilogue);
  }
  panels<kCols, kAnyLanes, shape>(a, b, c, epilogue);
}

// B in 8 or 16 bits: rows in groups of eight, and the remaining rows as four or in panels. The portable block
// takes three rows or less, columns that fill no block, and a single column after panels.
template <GemmShape shape, class B, class Epilogue>
ATTUNE_INLINE void quantized_gemm(const float* a, const B& b, float* c, const Epilogue& epilogue) {
  constexpr int kEights = eight_rows(shape.rows, std::is_same_v<B, ScaledRows<Int8, float>>),
                kLeft = shape.rows - kEights;
  const auto columns_from = [&]<int kFrom, int kFirstRow, int kCount>() ATTUNE_INLINE_LAMBDA {
    panels<kFrom, 1, shape.with_rows(kCount)>(a + kFirstRow * shape.a_row, b, c + kFirstRow * shape.c_row,
                                              epilogue);
  };
  const auto tiles = [&]<bool kSmall, int kFirstRow, int kCount>() ATTUNE_INLINE_LAMBDA {
    constexpr int kBlockCols = kSmall ? kTileSide : kQuantizedCols,
                  kTiledCols = shape.cols / kBlockCols * kBlockCols;
    quantized_tiles_product<kSmall>(a + kFirstRow * shape.a_row, elements_of(b), c + kFirstRow * shape.c_row,
                                    kQuantizedGrid<B, kSmall, shape.with_extents(kCount, kTiledCols)>,
                                    scales_of(b), epilogue);
    columns_from.template operator()<kTiledCols, kFirstRow, kCount>();
  };
  if constexpr (kEights > 0) tiles.template operator()<false, 0, kEights>();
  if constexpr (kLeft == kTileSide && !ATTUNE_FOR_SIZE) {
    tiles.template operator()<true, kEights, kTileSide>();
  } else if constexpr (kLeft >= kTileSide) {
    constexpr int kRest = shape.cols % kTileSide, kColsAgain = kRest > 1 ? kRest : 0;
    Array<float, panel_sums(kLeft)> sums;
    quantized_panels_product<kColsAgain>(a + kEights * shape.a_row, elements_of(b), c + kEights * shape.c_row,
                                         kPanelGrid<B, shape.with_rows(kLeft)>,
                                         PanelMemory{scales_of(b), sums}, epilogue);
    columns_from.template operator()<shape.cols - kRest + kColsAgain, kEights, kLeft>();
  } else if constexpr (kLeft > 0) {
    columns_from.template operator()<0, kEights, kLeft>();
  }
}

#endif

// One block of k in packets. Columns of A that are far apart are copied first.
template <GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void packets_gemm(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
  if constexpr (copies_a<Scalar>(shape)) {
    constexpr int kWhole = shape.rows / kRowBlock * kRowBlock;
    for (int i = 0; i < kWhole; i += kRowBlock) {
      copied_rows_gemm<shape.with_rows(kRowBlock)>(a + i, b, c + i * shape.c_row, epilogue);
    }
    if constexpr (kWhole < shape.rows) {
      copied_rows_gemm<shape.with_rows(shape.rows - kWhole)>(a + kWhole, b, c + kWhole * shape.c_row,
                                                             epilogue);
    }
  } else {
    panels<0, kAnyLanes, shape>(a, b, c, epilogue);
  }
}

// One block of k.
template <GemmShape shape, class Scalar, class B, class Epilogue>
ATTUNE_INLINE void gemm_block(const Scalar* a, const B& b, Scalar* c, const Epilogue& epilogue) {
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<B, const float*> && fits_few_terms<Epilogue>(shape)) {
    constexpr const FewTermsGrid& kGrid = kFewTermsGrid<shape>;
    few_terms_blocks<shape.depth>(a, b, c, kGrid);
    return beside_blocks<2 * kGrid.pairs, kGrid.cols, shape>(a, b, c, epilogue);
  }
  if constexpr (std::is_same_v<B, const float*> && fits_skinny_gemm(shape)) {
    constexpr const RowGrid& kGrid = kRowGrid<shape, kMayRepeat<Epilogue>>;
    return skinny_gemm(a, b, c, kGrid, epilogue);
  }
  if constexpr (std::is_same_v<B, const float*> && fits_copied_rows(shape)) {
    float rows[std::size_t{shape.rows} * shape.depth];
    for (int i = 0; i < shape.rows; ++i) {
      for (int k = 0; k < shape.depth; ++k) rows[i * shape.depth + k] = a[i + k * shape.a_col];
    }
    return gemm_block<shape.with_a(shape.depth, 1), float>(rows, b, c, epilogue);
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_quantized_row<B>(shape)) {
    using Element = std::remove_cvref_t<decltype(*elements_of(b))>;
    return skinny_gemm(a, b, c, kQuantizedRowGrid<Element, shape>, epilogue);
  }
  if constexpr (std::is_same_v<B, const float*> && fits_tile(shape)) {
    constexpr TileShape kTile = tile_shape<Epilogue>(shape);
    constexpr int kTiledRows = tiled(kTile, shape.rows, shape.cols).rows,
                  kTiledCols = tiled(kTile, shape.rows, shape.cols).cols;
    constexpr const auto& kGrid = kGridOf<kTile, shape.with_extents(kTiledRows, kTiledCols)>;
    if constexpr (std::is_empty_v<Epilogue>) {
      tiles_product<kTile, Epilogue>(a, b, c, kGrid);
    } else {
      tiles_product<kTile, Epilogue>(a, b, c, kGrid, epilogue);
    }
    return beside_blocks<kTiledRows, kTiledCols, shape>(a, b, c, epilogue);
  }
  if constexpr (std::is_same_v<Scalar, float> && fits_quantized<B>(shape)) {
    return quantized_gemm<shape>(a, b, c, epilogue);
  }
#elif ATTUNE_MVE && ATTUNE_FUSED
  if constexpr (std::is_same_v<Scalar, float> && std::is_same_v<B, const float*> && fits_mve(shape)) {
    mve_gemm<shape>(a, b, c, epilogue);
    panels<shape.cols / kMveLanes * kMveLanes, kAnyLanes, shape>(a, b, c, epilogue);
    return;
  }
#endif
  packets_gemm<shape>(a, b, c, epilogue);
}

template <GemmShape shape, class Scalar, class B, class Epilogue>
[[gnu::noinline]] void gemm(const Scalar* a, B b, Scalar* c, Epilogue epilogue) {
  if constexpr (shape.depth <= kDepthBlock) {
    gemm_block<shape>(a, b, c, epilogue);
  } else {
    static_assert(AddsUp<Epilogue>);
    gemm_block<shape.with_depth(kDepthBlock)>(a, b, c, epilogue);
    int k = kDepthBlock;
    if constexpr (shape.depth >= 2 * kDepthBlock) {
      for (; k + kDepthBlock <= shape.depth; k += kDepthBlock) {
        gemm_block<shape.with_depth(kDepthBlock)>(a + k * shape.a_col, rows_from(b, k * shape.b_row, k), c,
                                                  adding(epilogue));
      }
    }
    if constexpr (shape.depth % kDepthBlock != 0) {
      gemm_block<shape.with_depth(shape.depth % kDepthBlock)>(
          a + k * shape.a_col, rows_from(b, k * shape.b_row, k), c, adding(epilogue));
    }
  }
}

/// A QuantizedView, or all of a matrix in Bfloat16.
template <class B>
concept IsQuantized = requires {
  typename B::Element;
}
|| (std::is_same_v<std::remove_const_t<typename B::Scalar>, Bfloat16> && !kIsPart<B>);

/// Whether a product consists only of assembly blocks, which have a separate call.
template <class A, class B, class C, class Epilogue>
inline constexpr bool kIsWholeBlocks = [] {
#if ATTUNE_CORTEX_M_FPU
  constexpr GemmShape kGemm = kGemmShape<A, B, C>;
  constexpr TiledExtents kTiled = tiled(tile_shape<Epilogue>(kGemm), kGemm.rows, kGemm.cols);
  return std::is_same_v<typename C::Scalar, float> && kGemm.depth <= kDepthBlock && !IsQuantized<B> &&
         (fits_skinny_gemm(kGemm) ||
          (fits_few_terms<Epilogue>(kGemm) && kGemm.rows % 2 == 0 &&
           kGemm.cols % few_terms_cols(kGemm.depth) == 0) ||
          (kTiled.rows == kGemm.rows && kTiled.cols == kGemm.cols && fits_tile(kGemm)));
#else
  return false;
#endif
}();

// An epilogue after the scales of B's columns, if it has any.
template <class View, class Epilogue>
ATTUNE_INLINE auto with_scales_of(const View&, const Epilogue& epilogue) {
  return epilogue;
}
template <class Element, class Scalar, int kRows, int kCols, int kRowStride, int kColStride, class Epilogue>
ATTUNE_INLINE auto with_scales_of(
    const QuantizedView<Element, Scalar, kRows, kCols, kRowStride, kColStride, ScalesOf::kColumns>& b,
    const Epilogue& epilogue) {
  return ScaleColumns<Scalar, Epilogue>{b.scale, epilogue};
}

}  // namespace detail

/// C = epilogue(A·B) for three MatrixViews; B may be a QuantizedView, or a MatrixView of Bfloat16. A and B
/// may have any strides
/// (`x.transpose()`, `x.columns<n>(j)`); rows of C must be contiguous. C may not overlap A or B.
template <class A, class B, class C, class Epilogue = Assign>
ATTUNE_INLINE void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
  using Scalar = typename C::Scalar;
  static_assert(detail::Holds<(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows)>,
                "attune::kernels::gemm: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  static_assert(detail::Holds<(C::col_stride == 1)>,
                "attune::kernels::gemm: C must be row-major; swap and transpose the operands");
  constexpr bool kBlas = goes_to_blas(C::rows, C::cols, A::cols) && !detail::IsQuantized<B>;
  constexpr GemmShape kGemm = kGemmShape<A, B, C>;
  if constexpr (!detail::AddsUp<Epilogue> && (A::cols > kDepthBlock || kBlas)) {
    // A sum of several blocks is finished first; its epilogue then runs as a separate pass.
    gemm(a, b, c);
    for (int i = 0; i < C::rows; ++i) {
      Scalar* row = c.data + i * C::row_stride;
      for_each_packet<Scalar>(C::cols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        store(row + j, epilogue(load<P>(row + j), row + j, j));
      });
    }
  } else if constexpr (kBlas) {
#if ATTUNE_BLAS
    detail::blas_gemm<kGemm, Scalar>(a.data, b.data, c.data, std::is_same_v<Epilogue, Accumulate> ? 1 : 0);
#endif
  } else {
    const auto operand = detail::operand_of(b);
    const auto scaled = detail::with_scales_of(b, epilogue);
    if constexpr (detail::kIsWholeBlocks<A, B, C, Epilogue>) {
      detail::gemm_block<kGemm, Scalar>(a.data, operand, c.data, scaled);
    } else {
      detail::gemm<kGemm, Scalar>(a.data, operand, c.data, scaled);
    }
  }
}

namespace detail {

// Sums that continue: portable blocks and cortex_m/gemm_tile.hpp's begin with the values of C.
template <GemmShape shape, class Scalar>
[[gnu::noinline]] void continued_gemm(const Scalar* a, const Scalar* b, Scalar* c) {
  static_assert(shape.depth <= kDepthBlock);
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float> && fits_tile(shape)) {
    return gemm_block<shape>(a, b, c, Continue{});
  }
#endif
  panels<0, kAnyLanes, shape>(a, b, c, Continue{});
}

}  // namespace detail

/// Continues C: C = C + A·B, term by term. C holds the sums over all earlier terms.
template <class A, class B, class C>
  requires(!kIsPart<A> && !kIsPart<B> && !kIsPart<C>)
ATTUNE_INLINE void gemm(const A& a, const B& b, const C& c, Continue) {
  static_assert(A::rows == C::rows && B::cols == C::cols && A::cols == B::rows && C::col_stride == 1);
  detail::continued_gemm<kGemmShape<A, B, C>>(a.data, b.data, c.data);
}

}  // namespace ATTUNE_NAMESPACE::kernels
