// Views: matrices in someone else's storage.
//
// A matrix is row-major, its dimensions are part of its type, and its rows are tokens. `MatrixView` is a
// pointer with compile-time dimensions and strides. It converts without a copy from any storage with the
// right number of scalars: a Tensor (core/tensor.hpp), a fixed-size row-major Eigen matrix, an array.
// core/checked_view.hpp checks sizes known only at run time.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/kernels/checked.hpp>
#include <attune/kernels/policy.hpp>
#include <attune/kernels/storage.hpp>

// clang then warns about a view that outlives its temporary.
#if defined(__clang__)
#define ATTUNE_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define ATTUNE_LIFETIME_BOUND
#endif

namespace ATTUNE_NAMESPACE {

/// The vectors of a matrix: its rows, or its columns after transpose(). Strides do not tell: the rows and the
/// columns of a [n, 1] matrix can have the same ones.
enum class Major {
  kRow = 0,     // each row is a vector
  kColumn = 1,  // each column is a vector
};

template <class ScalarType, int kRows, int kCols, int kRowStride = kCols, int kColStride = 1,
          Major kMajor = kColStride == 1 ? Major::kRow : Major::kColumn>
struct MatrixView;
template <class View, class Rows, class Cols>
struct PartView;

/// A range of rows whose number is known at run time.
struct RowRange {
  int first;  // the first row
  int count;
  /// The first row, when used as an offset.
  constexpr operator int() const { return first; }
  /// A range of the same length, `offset` rows further down.
  friend constexpr RowRange operator+(int offset, RowRange rows) { return {offset + rows.first, rows.count}; }
};

namespace detail {

/// A source that is a MatrixView itself.
template <class Source>
concept IsView = requires {
  std::remove_cvref_t<Source>::kMajor;
};

template <class P>
concept Pointer = std::is_pointer_v<P>;
template <class P, class Scalar>
concept PointerTo = Pointer<P> && std::is_convertible_v<P, Scalar*>;
template <class T>
concept PlainNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Sources that a constructor of `View` accepts or explains: anything that holds numbers. Views of the same
/// type are copied. A read-only view never becomes a mutable one.
template <class Source, class View>
concept SourceOf =
    Stored<Source> && !std::is_same_v<std::remove_cvref_t<Source>, View> &&
    !(IsView<Source> && std::is_const_v<ElementOf<Source>> && !std::is_const_v<typename View::Scalar>);

}  // namespace detail

/// A [kRows, kCols] matrix in someone else's storage. Element (i, j) is data[i·kRowStride + j·kColStride];
/// strides count scalars. Converts implicitly from
///
///   Tensor, fixed-size row-major Eigen matrices and maps, other views       of this shape
///   float[rows][cols], std::array<std::array<float, cols>, rows>            of this shape
///   float[n], std::array<float, n>, std::span<float, n>                     of n = rows·cols scalars
///   arrays of any of these that own their numbers                           stacked
///
/// Copies nothing. A view of a temporary is valid until the end of the call. A wrong size, scalar, order or
/// constness that is known at compile time is a compile error.
template <class ScalarType, int kRows, int kCols, int kRowStride, int kColStride, Major of_vectors>
struct MatrixView {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  /// Distance between rows, in scalars.
  static constexpr int row_stride = kRowStride;
  /// Distance between columns, in scalars.
  static constexpr int col_stride = kColStride;
  /// Whether its vectors, such as tokens, are rows or columns.
  static constexpr Major kMajor = of_vectors;

  Scalar* data;

  /// Whether the scalars are contiguous, row after row.
  static constexpr bool kDense = (kRows == 1 || kRowStride == kCols) && (kCols == 1 || kColStride == 1);

  /// Views the scalars at `first`; there must be as many as the view spans.
  template <detail::PointerTo<ScalarType> Pointer>
  constexpr explicit MatrixView(const Pointer& first) : data(first) {}
  /// A pointer alone is a compile error: it has no number of scalars.
  template <detail::Pointer Pointer>
  constexpr MatrixView(const Pointer&) : data(nullptr) {
    static_assert(detail::Holds<!detail::Pointer<Pointer>>,
                  "attune::MatrixView: a pointer has no size; check it with attune::checked_view, or promise "
                  "the size with MatrixView{pointer}");
  }

  /// A number is a compile error.
  template <detail::PlainNumber Source>
  constexpr MatrixView(Source) : data(nullptr) {
    static_assert(
        detail::Holds<!detail::PlainNumber<Source>>,
        "attune::MatrixView: a number cannot be a matrix; if it is a class, the loss must take classes, "
        "as CrossEntropy does");
  }

  /// An expression of Eigen is a compile error: it has no numbers in memory.
  template <detail::EigenExpression Source>
  constexpr MatrixView(const Source&) : data(nullptr) {
    static_assert(
        detail::Holds<!detail::EigenExpression<Source>>,
        "attune::MatrixView: an expression of Eigen has no numbers in memory; call eval(), or copy it "
        "into a matrix");
  }

  // Takes any source that holds numbers, so that the error can name the mistake.
  /// Views a source with such a matrix: see above.
  template <detail::SourceOf<MatrixView> Source>
  constexpr MatrixView(Source& source) : data(first_of(source)) {}
  /// Views another view, or a reference to a matrix.
  template <detail::SourceOf<MatrixView> Source>
  constexpr MatrixView(Source&& source) : data(first_of(source)) {}
  /// Views a temporary; valid until the end of the call.
  template <detail::SourceOf<MatrixView> Source>
    requires(detail::Storage<std::remove_const_t<Source>>::kOwns)
  constexpr MatrixView(Source&& source ATTUNE_LIFETIME_BOUND) : data(first_of(source)) {
    static_assert(detail::Holds<std::is_const_v<ScalarType>>,
                  "attune::MatrixView: the destination is a temporary; store it in a variable");
  }

  /// Element (row, col); checked in checked mode only.
  [[nodiscard]] constexpr Scalar& operator()(int row, int col) const {
    ATTUNE_ASSERT(row >= 0 && row < kRows && col >= 0 && col < kCols,
                  "MatrixView: an element is outside of the matrix");
    return data[row * kRowStride + col * kColStride];
  }

  [[nodiscard]] constexpr auto transpose() const {
    constexpr Major kOther = kMajor == Major::kRow ? Major::kColumn : Major::kRow;
    return MatrixView<Scalar, kCols, kRows, kColStride, kRowStride, kOther>(data);
  }
  /// `kCount` columns, starting at `first`: head h of [seq_len, num_heads·d_k] is `columns<d_k>(h * d_k)`.
  template <int kCount>
  [[nodiscard]] constexpr auto columns(int first) const {
    static_assert(detail::Holds<(kCount <= kCols)>, "attune::MatrixView: too many columns requested");
    ATTUNE_ASSERT(first >= 0 && first <= kCols - kCount, "MatrixView: columns are outside of the matrix");
    return MatrixView<Scalar, kRows, kCount, kRowStride, kColStride, kMajor>(data + first * kColStride);
  }
  /// `kCount` rows, starting at `first`: sequence b of a stacked batch is `rows_at<seq_len>(b * seq_len)`.
  template <int kCount>
  [[nodiscard]] constexpr auto rows_at(int first) const {
    static_assert(detail::Holds<(kCount <= kRows)>, "attune::MatrixView: too many rows requested");
    ATTUNE_ASSERT(first >= 0 && first <= kRows - kCount, "MatrixView: rows are outside of the matrix");
    return MatrixView<Scalar, kCount, kCols, kRowStride, kColStride, kMajor>(data + first * kRowStride);
  }
  /// The same; uses at most range.count of the rows.
  template <int kCount>
  [[nodiscard]] constexpr auto rows_at(RowRange range) const {
    const int count = range.count < kCount ? range.count : kCount;
    ATTUNE_ASSERT(range.first >= 0 && count >= 0 && range.first <= kRows - count,
                  "MatrixView: rows are outside of the matrix");
    using Rows = MatrixView<Scalar, kCount, kCols, kRowStride, kColStride, kMajor>;
    return PartView<Rows, int, std::integral_constant<int, kCols>>(Rows(data + range.first * kRowStride),
                                                                   count, {});
  }

 private:
  template <class Source>
  static constexpr Scalar* first_of(Source& source) {
    using From = detail::Storage<std::remove_const_t<Source>>;
    using Element = detail::ElementOf<Source>;
    constexpr bool kSameScalar = std::is_same_v<std::remove_const_t<Element>, std::remove_const_t<Scalar>>;
    constexpr bool kMayWrite = std::is_const_v<Scalar> || !std::is_const_v<Element>;
    constexpr bool kKnown = From::cols > 0;
    constexpr bool kSameShape =
        From::rows > 0 ? From::rows == kRows && From::cols == kCols : From::cols == kRows * kCols;
    constexpr int kFromRowStride = From::rows > 0 ? From::row_stride : kCols;
    constexpr bool kSameStrides =
        (kRows == 1 || kFromRowStride == kRowStride) && (kCols == 1 || From::col_stride == kColStride);
    constexpr bool kColumnMajor = From::row_stride == 1 && From::cols > 1 && kColStride == 1;
    static_assert(detail::Holds<kSameScalar>,
                  "attune::MatrixView: the matrix and the layer have different scalar types; the layer's is "
                  "float unless you chose another");
    static_assert(detail::Holds<kMayWrite>,
                  "attune::MatrixView: the destination is const; pass a matrix that can change");
    static_assert(detail::Holds<kKnown>,
                  "attune::MatrixView: the size is known only at run time; check it with "
                  "attune::checked_view, or fix it at compile time");
    static_assert(detail::Holds<(!kKnown || kSameShape)>,
                  "attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, "
                  "columns features, and an array without a shape has rows * cols numbers");
    static_assert(
        detail::Holds<(!kSameShape || kSameStrides || !kColumnMajor)>,
        "attune::MatrixView: the matrix is column-major; declare it with Eigen::RowMajor, or copy it "
        "into a Tensor");
    static_assert(detail::Holds<(!kSameShape || kSameStrides || kColumnMajor)>,
                  "attune::MatrixView: the matrix is strided; copy it into a Tensor or a dense matrix");
    if constexpr (kSameScalar && kMayWrite) {
      return From::first(source);
    } else {
      return nullptr;
    }
  }
};

namespace detail {

/// A view is a source like its matrix.
template <class Scalar, int kRows, int kCols, int kRowStride, int kColStride, Major kMajor>
struct Storage<MatrixView<Scalar, kRows, kCols, kRowStride, kColStride, kMajor>> {
  static constexpr bool kOwns = false;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int row_stride = kRowStride;
  static constexpr int col_stride = kColStride;
  static constexpr Scalar* first(const auto& source) { return source.data; }
};

}  // namespace detail

/// The first rows and columns of a matrix. Rows and Cols are int if their number is known at run time, else a
/// std::integral_constant. The values after them do not matter.
template <class View, class Rows, class Cols>
struct PartView : View {
  [[no_unique_address]] Rows used_rows;  // number of rows in use
  [[no_unique_address]] Cols used_cols;  // number of columns in use

  /// The first rows and columns of `all`.
  constexpr PartView(const View& all, Rows number_of_rows, Cols number_of_cols)
      : View(all), used_rows(number_of_rows), used_cols(number_of_cols) {
    ATTUNE_ASSERT(number_of_rows >= 0 && number_of_rows <= View::rows && number_of_cols >= 0 &&
                      number_of_cols <= View::cols,
                  "PartView: more rows or columns than the matrix has");
  }

  [[nodiscard]] constexpr auto transpose() const { return part_of(View::transpose(), used_cols, used_rows); }
  /// The used part of kCount columns, starting at `first`.
  template <int kCount>
  [[nodiscard]] constexpr auto columns(int first) const {
    return part_of(View::template columns<kCount>(first), used_rows, left<kCount>(used_cols, first));
  }
  template <int kCount>
  [[nodiscard]] constexpr auto rows_at(int first) const {
    return part_of(View::template rows_at<kCount>(first), left<kCount>(used_rows, first), used_cols);
  }
  template <int kCount>
  [[nodiscard]] constexpr auto rows_at(RowRange range) const {
    const int most = left<kCount>(used_rows, range.first);
    return part_of(View::template rows_at<kCount>(range.first), range.count < most ? range.count : most,
                   used_cols);
  }

 private:
  template <class Other, class Few, class Many>
  static constexpr PartView<Other, Few, Many> part_of(const Other& all, Few rows, Many cols) {
    return {all, rows, cols};
  }
  // Number of used elements among kMax, starting at `first`. A constant number means all of them.
  template <int kMax>
  static constexpr int left(int used, int first) {
    return used <= first ? 0 : used - first < kMax ? used - first : kMax;
  }
  template <int kMax, int kUsed>
  static constexpr auto left(std::integral_constant<int, kUsed>, int) {
    return std::integral_constant<int, kMax>{};
  }
};

/// Whether a view is a PartView.
template <class View>
inline constexpr bool kIsPart = detail::kIsSpecialization<std::remove_const_t<View>, PartView>;

/// Number of used rows of a view: a constant, or a PartView's number.
template <class View>
[[nodiscard]] constexpr auto used_rows(const View& view) {
  if constexpr (kIsPart<View>) {
    return view.used_rows;
  } else {
    return std::integral_constant<int, View::rows>{};
  }
}
/// Number of used columns of a view.
template <class View>
[[nodiscard]] constexpr auto used_cols(const View& view) {
  if constexpr (kIsPart<View>) {
    return view.used_cols;
  } else {
    return std::integral_constant<int, View::cols>{};
  }
}
/// Number of rows for a body of slices (execution/slices.hpp): kCount, or fewer in a range.
template <int kCount>
[[nodiscard]] constexpr auto rows_in(int) {
  return std::integral_constant<int, kCount>{};
}
/// Number of rows in a range, at most kCount.
template <int kCount>
[[nodiscard]] constexpr int rows_in(RowRange rows) {
  return rows.count < kCount ? rows.count : kCount;
}

namespace detail {

// The same rows, counted from 0: in memory of these rows alone.
constexpr int at_start(int) { return 0; }
constexpr RowRange at_start(RowRange rows) { return {0, rows.count}; }

}  // namespace detail

/// The view of a Tensor, a fixed-size row-major Eigen matrix or map, or an array of arrays. A flat array is
/// one row, [1, n].
template <detail::Stored Source>
  requires(!detail::IsView<Source>)
[[nodiscard]] constexpr auto view(Source& source) {
  using From = detail::Storage<std::remove_const_t<Source>>;
  static_assert(detail::Holds<(From::cols > 0)>,
                "attune::view: the size is known only at run time; check it with attune::checked_view, or "
                "fix it at compile time");
  constexpr int kRows = From::rows == 0 ? 1 : From::rows;
  return MatrixView<detail::ElementOf<Source>, kRows, From::cols>(source);
}
template <class Scalar, int kRows, int kCols, int kRowStride, int kColStride, Major kMajor>
[[nodiscard]] constexpr auto view(
    const MatrixView<Scalar, kRows, kCols, kRowStride, kColStride, kMajor>& source) {
  return source;
}

/// The view of a matrix that is used as one array of rows·cols scalars.
template <class Source>
[[nodiscard]] constexpr auto dense_view(Source&& source) {
  const auto matrix = view(source);
  static_assert(detail::Holds<decltype(matrix)::kDense>,
                "attune: this needs a dense matrix; copy the strided view into a Tensor");
  return matrix;
}

/// The same view, read-only.
template <class Scalar, int kRows, int kCols, int kRowStride, int kColStride, Major kMajor>
[[nodiscard]] constexpr auto as_const(
    const MatrixView<Scalar, kRows, kCols, kRowStride, kColStride, kMajor>& source) {
  return MatrixView<const Scalar, kRows, kCols, kRowStride, kColStride, kMajor>(source.data);
}

}  // namespace ATTUNE_NAMESPACE
