// Storage of matrices. A matrix is row-major, its dimensions are part of its type, and its rows are tokens.
// kernels/matrix_view.hpp has the views.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

// The library includes no header of Eigen. A program that calls matrix() includes Eigen/Core.
/// @cond
namespace Eigen {
template <class Scalar, int rows, int cols, int options, int max_rows, int max_cols>
class Matrix;
template <class Plain, int alignment, class Strides>
class Map;
template <int outer, int inner>
class Stride;
}  // namespace Eigen
/// @endcond

namespace ATTUNE_NAMESPACE {

namespace detail {

/// A size of at least 1, so that a refused size causes no further errors.
[[nodiscard]] constexpr int at_least_one(int size) { return size > 0 ? size : 1; }
/// The same for several members of a shape.
template <class Shape, class... Member>
[[nodiscard]] constexpr Shape at_least_one(Shape shape, Member... sizes) {
  ((shape.*sizes = at_least_one(shape.*sizes)), ...);
  return shape;
}

template <int kRows, int kCols>
inline constexpr bool kSizesFit = kRows > 0 && kCols > 0 &&
                                  kRows <= (std::numeric_limits<int>::max)() / at_least_one(kCols);

// Static assertions are in functions: in clang, a class whose own body fails has no members.
template <class Scalar, int kRows, int kCols>
constexpr bool check_tensor() {
  static_assert(Holds<(kRows > 0 && kCols > 0)>,
                "attune::Tensor: rows and cols must be positive; give the layer positive sizes");
  static_assert(
      Holds<(kSizesFit<kRows, kCols> || kRows < 1 || kCols < 1)>,
      "attune::Tensor: rows * cols must be below 2^31; attention keeps [num_heads * seq_len, kv_len] "
      "weights unless keep_weights = false");
  static_assert(Holds<std::is_floating_point_v<kernels::Real<Scalar>>>,
                "attune::Tensor: the scalar must be float or double");
  return true;
}

template <class Matrix>
using EigenMap = Eigen::Map<Matrix, 0, Eigen::Stride<0, 0>>;

}  // namespace detail

/// A [rows, cols] row-major matrix of plain storage, without padding: trivially copyable and
/// constant-initialized (`.bss` when zero, flash when const). `tensor.matrix()` is its Eigen view, for
/// programs that include Eigen/Core.
template <class ScalarType, int kRows, int kCols>
struct Tensor {
  static_assert(detail::check_tensor<ScalarType, kRows, kCols>());

  using Scalar = ScalarType;
  /// Row-major, except for Eigen's columns.
  using Matrix = Eigen::Matrix<Scalar, kRows, kCols, (kCols == 1 && kRows > 1) ? 0 : 1, kRows, kCols>;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = detail::kSizesFit<kRows, kCols> ? kRows * kCols : 1;

  /// The elements, row-major.
  Scalar values[static_cast<std::size_t>(size)];

  [[nodiscard]] constexpr Scalar* data() { return values; }
  [[nodiscard]] constexpr const Scalar* data() const { return values; }
  /// Element (row, col); checked in checked mode only.
  [[nodiscard]] constexpr Scalar& operator()(int row, int col) {
    ATTUNE_ASSERT(row >= 0 && row < kRows && col >= 0 && col < kCols, "Tensor: an element is outside of it");
    return values[row * cols + col];
  }
  /// Element (row, col); checked in checked mode only.
  [[nodiscard]] constexpr const Scalar& operator()(int row, int col) const {
    ATTUNE_ASSERT(row >= 0 && row < kRows && col >= 0 && col < kCols, "Tensor: an element is outside of it");
    return values[row * cols + col];
  }

  /// The same numbers as an Eigen matrix. Needs Eigen/Core.
  [[nodiscard]] detail::EigenMap<Matrix> matrix() { return detail::EigenMap<Matrix>(values); }
  /// The same numbers as an Eigen matrix. Needs Eigen/Core.
  [[nodiscard]] detail::EigenMap<const Matrix> matrix() const {
    return detail::EigenMap<const Matrix>(values);
  }
  constexpr void set_zero() {
    for (Scalar& value : values) value = 0;
  }
};

}  // namespace ATTUNE_NAMESPACE
