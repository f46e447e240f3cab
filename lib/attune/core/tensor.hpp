// Storage: what every layer reads and writes. A matrix is row-major, its extents are part of its type, and
// its rows are tokens. kernels/matrix_view.hpp has views of it.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// A [rows, cols] row-major matrix of plain storage: trivially copyable, constant-initialized (`.bss` when
/// zero, flash when const), no padding. `tensor.matrix()` is its Eigen view, for programs that
/// include Eigen/Core.
template <class ScalarType, int kRows, int kCols>
struct Tensor {
  static_assert(kRows > 0 && kCols > 0,
                "attune::Tensor: rows and cols must be positive; give the layer positive sizes");
  static_assert(
      kRows < 1 || kCols < 1 || kRows <= (std::numeric_limits<int>::max)() / (kCols < 1 ? 1 : kCols),
      "attune::Tensor: rows * cols must be below 2^31; attention keeps [num_heads * seq_len, kv_len] "
      "weights unless keep_weights = false");
  static_assert(std::is_floating_point_v<kernels::Real<ScalarType>>,
                "attune::Tensor: the scalar must be float or double");

  using Scalar = ScalarType;
  using Matrix =
      Eigen::Matrix<Scalar, kRows, kCols, (kCols == 1 && kRows > 1) ? Eigen::ColMajor : Eigen::RowMajor>;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = kRows * kCols;

  /// Row-major.
  Scalar values[static_cast<std::size_t>(size)];

  [[nodiscard]] constexpr Scalar* data() { return values; }
  [[nodiscard]] constexpr const Scalar* data() const { return values; }
  /// Element (row, col); not checked.
  [[nodiscard]] constexpr Scalar& operator()(int row, int col) { return values[row * cols + col]; }
  /// Element (row, col); not checked.
  [[nodiscard]] constexpr const Scalar& operator()(int row, int col) const {
    return values[row * cols + col];
  }

  /// The same numbers as an Eigen matrix. Needs Eigen/Core.
  [[nodiscard]] Eigen::Map<Matrix> matrix() { return Eigen::Map<Matrix>(values); }
  /// The same numbers as an Eigen matrix. Needs Eigen/Core.
  [[nodiscard]] Eigen::Map<const Matrix> matrix() const { return Eigen::Map<const Matrix>(values); }
  constexpr void set_zero() {
    for (Scalar& value : values) value = 0;
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
