// Gradients that a backward adds to directly, row by row, without a product.
#pragma once

#include <attune/weights/roles.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The least number of rows, or all, in each call below of parameters that are updated at once.
inline constexpr int kMinUpdatedRows = 8;

}  // namespace detail

/// Calls add(first, rows) with a dense view of gradient rows, starting at row `first`; add() adds to them.
/// The view has all rows, or a few rows per call if parameters are updated at once. A row's parameters change
/// after add() has returned for it. Untrained tensors get no call.
template <class Scalar, int kRows, int kCols, class Add>
ATTUNE_INLINE void add_rows(const MatrixView<Scalar, kRows, kCols>& gradient, const Add& add) {
  add(0, gradient);
}
template <class Scalar, int rows, int cols, class Place, class Add>
ATTUNE_INLINE void add_rows(detail::UntrainedIn<Scalar, rows, cols, Place>, const Add&) {}

/// Backward of a layer whose only parameter is a vector, which dx reads: `add(sums)` adds the vector's
/// gradient, `input()` computes dx. If the vector is updated at once, dx comes between its gradient and its
/// update.
template <class Gradient, class Call, class Add, class Input>
ATTUNE_INLINE void add_gradient_then_input([[maybe_unused]] Gradient& gradient,
                                           [[maybe_unused]] const Call& context,
                                           [[maybe_unused]] const Add& add, const Input& input) {
  if constexpr (!detail::IsTrained<Gradient>) {
    input();
  } else if constexpr (detail::UpdatesAtOnce<Gradient>) {
    add_rows(view(gradient), [&](int, const auto& to) {
      add(to.data);
      input();
    });
  } else {
    context.stage([&]() ATTUNE_INLINE_LAMBDA { add(gradient.data()); });
    input();
  }
}

/// Both parts of a backward: `parameters()` adds to gradients, `input()` computes dx. dx comes first if the
/// parameters, which it reads, are updated at once.
template <bool updates_at_once>
ATTUNE_INLINE void in_order_of_updates(const auto& parameters, const auto& input) {
  if constexpr (!updates_at_once) parameters();
  input();
  if constexpr (updates_at_once) parameters();
}

/// Backward through a weight that is updated at once: gradient += xᵀ·dy. Overwrites x[rows, in] with dx =
/// dy·Wᵀ of the old weight, a few columns at a time.
template <class X, class Dy, class Weight, class Gradient, class Terms>
ATTUNE_INLINE void update_in_place(const X& x, const Dy& dy, const Weight& weight, const Gradient& gradient,
                                   const Terms& terms) {
  add_rows(gradient, [&]<class Rows>(int first, const Rows& rows) ATTUNE_INLINE_LAMBDA {
    const auto features = x.template columns<Rows::rows>(first);
    add_product(features.transpose(), dy, rows, terms);
    multiply_transposed_rows(dy, weight, first, features);
  });
}

namespace detail {

/// Whether a layer's dx may be x in a backward to such gradients.
template <class Layer, class Gradients>
concept GradientReplacesInput = GradientMayBeInput<Layer> &&
    (UpdatesInPlace<Layer> || !UpdatesInSet<Gradients>);

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
