// Gradients that a backward adds to by itself, without a product: rows of them, whatever stands for them.
#pragma once

#include <attune/core/weights.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Calls add(first, rows) with a dense view of rows of a gradient, from row `first` on, to which it adds: all
/// of them at once, or, where parameters are updated at once, a few at a time. Those of a row change when
/// add() has returned for it. Nothing for what is not trained.
template <class Scalar, int kRows, int kCols, class Add>
ATTUNE_INLINE void add_rows(const MatrixView<Scalar, kRows, kCols>& gradient, const Add& add) {
  add(0, gradient);
}
template <class Scalar, int rows, int cols, class Add>
ATTUNE_INLINE void add_rows(Untrained<Scalar, rows, cols>, const Add&) {}

namespace detail {

/// Whether something in a set of what stands for gradients changes its parameter at once. A backward to such
/// a set may not write dx over x, which it reads once more.
template <class Gradients>
inline constexpr bool kUpdatesInSet =
    kUpdatesAtOnce<typename FormOf<Gradients>::type::template Matrix<float, 1, 1>> ||
    kUpdatesAtOnce<typename FormOf<Gradients>::type::template Vector<float, 1, 1>>;

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
