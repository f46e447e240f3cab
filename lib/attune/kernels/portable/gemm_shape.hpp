// Dimensions of a product.
#pragma once

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Dimensions of C[rows, cols] = A[rows, depth] · B, and strides between rows and between columns, in
/// elements. Rows of C are contiguous.
struct GemmShape {
  int rows, cols, depth;
  int a_row, a_col, b_row, b_col, c_row;

  /// The same product with other dimensions, or with other strides.
  [[nodiscard]] constexpr GemmShape with_extents(int new_rows, int new_cols) const {
    return {new_rows, new_cols, depth, a_row, a_col, b_row, b_col, c_row};
  }
  [[nodiscard]] constexpr GemmShape with_rows(int count) const { return with_extents(count, cols); }
  [[nodiscard]] constexpr GemmShape with_cols(int count) const { return with_extents(rows, count); }
  [[nodiscard]] constexpr GemmShape with_depth(int terms) const {
    return {rows, cols, terms, a_row, a_col, b_row, b_col, c_row};
  }
  [[nodiscard]] constexpr GemmShape with_a(int row, int col) const {
    return {rows, cols, depth, row, col, b_row, b_col, c_row};
  }
  [[nodiscard]] constexpr GemmShape with_b(int row, int col) const {
    return {rows, cols, depth, a_row, a_col, row, col, c_row};
  }
};

/// The shape of C = A·B for three views.
template <class A, class B, class C>
inline constexpr GemmShape kGemmShape{C::rows,       C::cols,       A::cols,       A::row_stride,
                                      A::col_stride, B::row_stride, B::col_stride, C::row_stride};

}  // namespace ATTUNE_NAMESPACE::kernels
