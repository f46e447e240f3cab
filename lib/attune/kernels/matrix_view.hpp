// Views: a matrix in somebody else's storage.
//
// A matrix is row-major, its extents are part of its type, and its rows are tokens. `MatrixView` is a pointer
// with compile-time extents and strides, made without a copy from a Tensor (core/tensor.hpp) or from any
// fixed-size row-major Eigen matrix.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/kernels/policy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// A [kRows, kCols] matrix in somebody else's storage; element (i, j) stands at data[i·kRowStride +
/// j·kColStride]. Strides count scalars. Converts implicitly from Tensor and from fixed-size row-major Eigen
/// matrices and maps.
template <class ScalarType, int kRows, int kCols, int kRowStride = kCols, int kColStride = 1>
struct MatrixView {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int row_stride = kRowStride;
  static constexpr int col_stride = kColStride;

  Scalar* data;

  constexpr explicit MatrixView(Scalar* first) : data(first) {}

  // Any scalar may come here, so that a wrong one is told; a const source only into a view of const.
  template <class Source>
    requires(requires(Source& source) { source.data(); } &&
             (std::is_const_v<ScalarType> ||
              !std::is_const_v<std::remove_pointer_t<decltype(std::declval<Source&>().data())>>))
  constexpr MatrixView(Source& source) : data(checked(source)) {}
  template <class Source>
    requires(std::is_const_v<ScalarType>&& requires(const Source& source) { source.data(); })
  constexpr MatrixView(const Source& source) : data(checked(source)) {}
  template <class Mutable>
    requires(std::is_same_v<const Mutable, ScalarType> && !std::is_same_v<Mutable, ScalarType>)
  constexpr MatrixView(const MatrixView<Mutable, kRows, kCols, kRowStride, kColStride>& other)
      : data(other.data) {}

  [[nodiscard]] constexpr Scalar& operator()(int row, int col) const {
    return data[row * kRowStride + col * kColStride];
  }

  [[nodiscard]] constexpr auto transpose() const {
    return MatrixView<Scalar, kCols, kRows, kColStride, kRowStride>(data);
  }
  /// `kCount` columns from `first` on: head h of [seq_len, num_heads·d_k] is `columns<d_k>(h * d_k)`.
  template <int kCount>
  [[nodiscard]] constexpr auto columns(int first) const {
    static_assert(kCount <= kCols, "attune::MatrixView: more columns asked for than there are");
    return MatrixView<Scalar, kRows, kCount, kRowStride, kColStride>(data + first * kColStride);
  }
  /// `kCount` rows from `first` on: sequence b of a stacked batch is `rows_at<seq_len>(b * seq_len)`.
  template <int kCount>
  [[nodiscard]] constexpr auto rows_at(int first) const {
    static_assert(kCount <= kRows, "attune::MatrixView: more rows asked for than there are");
    return MatrixView<Scalar, kCount, kCols, kRowStride, kColStride>(data + first * kRowStride);
  }

 private:
  template <class SourceType>
  static constexpr Scalar* checked(SourceType& source) {
    using Source = std::remove_const_t<SourceType>;
    constexpr bool kSameScalar = std::is_same_v<typename Source::Scalar, std::remove_const_t<Scalar>>;
    static_assert(kSameScalar,
                  "attune::MatrixView: the matrix has another scalar type; use the layer's (float unless you "
                  "named one)");
    static_assert(kRowStride == kCols && kColStride == 1,
                  "attune::MatrixView: only a dense view is made from a matrix");
    if constexpr (requires { Source::RowsAtCompileTime; }) {
      static_assert(
          Source::RowsAtCompileTime == kRows && Source::ColsAtCompileTime == kCols,
          "attune::MatrixView: the Eigen matrix has another shape than the layer; rows are tokens, columns "
          "features, and both are fixed at compile time");
      static_assert(bool(Source::IsRowMajor) || kRows == 1 || kCols == 1,
                    "attune::MatrixView: the Eigen matrix is column-major; declare it with Eigen::RowMajor");
      static_assert(
          (int(Source::OuterStrideAtCompileTime) == kCols || kRows == 1 || kCols == 1) &&
              int(Source::InnerStrideAtCompileTime) == 1,
          "attune::MatrixView: the Eigen matrix is a strided block; copy it into a Tensor or a dense matrix");
    } else {
      static_assert(Source::rows == kRows && Source::cols == kCols,
                    "attune::MatrixView: the Tensor has another shape than the layer; rows are tokens, "
                    "columns features");
    }
    if constexpr (kSameScalar) {
      return source.data();
    } else {
      return nullptr;
    }
  }
};

/// The view of anything that has one: a Tensor, a MatrixView, a fixed-size row-major Eigen matrix or map.
template <class Source>
  requires(requires(Source& source) { source.data(); })
[[nodiscard]] constexpr auto view(Source& source) {
  using Element = std::remove_pointer_t<decltype(source.data())>;
  if constexpr (requires { Source::RowsAtCompileTime; }) {
    static_assert(Source::RowsAtCompileTime > 0 && Source::ColsAtCompileTime > 0,
                  "attune::view: the Eigen matrix is dynamic; fix its rows and columns at compile time");
    return MatrixView<Element, Source::RowsAtCompileTime, Source::ColsAtCompileTime>(source);
  } else {
    return MatrixView<Element, Source::rows, Source::cols>(source);
  }
}
template <class Scalar, int kRows, int kCols, int kRowStride, int kColStride>
[[nodiscard]] constexpr auto view(const MatrixView<Scalar, kRows, kCols, kRowStride, kColStride>& source) {
  return source;
}

/// The same view, read-only.
template <class Scalar, int kRows, int kCols, int kRowStride, int kColStride>
[[nodiscard]] constexpr auto as_const(
    const MatrixView<Scalar, kRows, kCols, kRowStride, kColStride>& source) {
  return MatrixView<const Scalar, kRows, kCols, kRowStride, kColStride>(source.data);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
