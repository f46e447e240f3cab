// The tokens of a grid, such as an image, column by column in place of row by row. Tokens of a column then
// stand one behind the other, as EachGroup (models/each_group.hpp) takes them.
//
//   y[j·rows + i] = x[i·cols + j],   dx[i·cols + j] = dy[j·rows + i]      for cells of one token
//
// A cell can have several tokens, which stay side by side: rows = a, cols = b and cell = c turn tokens in the
// order [a, b, c] into [b, a, c]. EachGroup<groups, TransposeGrid<…>> turns [groups, a, b, c] into [groups,
// b, a, c]. Windows of an image of h × w tokens: groups = h / window, rows = window, cols = w / window, cell
// = window.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `TransposeGrid`.
struct TransposeGridShape {
  int rows;      // of the grid of x
  int cols;      // of the grid of x
  int d_model;   // features of a token
  int cell = 1;  // tokens in each place of the grid
};

/// y[cols·rows·cell, d_model] of x[rows·cols·cell, d_model]. No tape. A mask or a length of the call is a
/// compile error: behind this layer it would hide other tokens.
template <TransposeGridShape grid_shape, class ScalarType = float>
struct TransposeGrid : detail::Unparameterized<TransposeGrid<grid_shape, ScalarType>>, detail::InputUnread {
  static constexpr TransposeGridShape shape = [] {
    static_assert(detail::Holds<(grid_shape.rows > 0 && grid_shape.cols > 0 && grid_shape.d_model > 0 &&
                                 grid_shape.cell > 0)>,
                  "attune::TransposeGrid: rows, cols, d_model and cell must be positive; set the first three "
                  "in TransposeGridShape");
    return detail::at_least_one(grid_shape, &TransposeGridShape::rows, &TransposeGridShape::cols,
                                &TransposeGridShape::d_model, &TransposeGridShape::cell);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = TransposeGrid<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("TransposeGrid", shape.rows, shape.cols, shape.cell);
  using Input = Tensor<Scalar, shape.rows * shape.cols * shape.cell, shape.d_model>;
  using Output = Input;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,  // to refuse it
                                        .takes_context = true,
                                        .lanes = Lanes::kAll};
  using Base = detail::Unparameterized<TransposeGrid>;
  using Base::forward, Base::backward;

  /// `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    static_assert(
        detail::Holds<(!kMasks<typename Call::Mask> && !Call::kHasLength)>,
        "attune::TransposeGrid: tokens change their places, so a mask or a length of the call would hide "
        "others in later layers; leave it out");
    each_token(context, [&](int from, int to) { copy(x.data, from, y.data, to); });
  }
  /// Overwrites dx[rows·cols·cell, d_model], from dy. `dx` may not overlap `dy`.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input>, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    each_token(context, [&](int to, int from) { copy(dy.data, from, dx.data, to); });
  }

 private:
  // body(place in x, place in y) for each token of x.
  template <class Body>
  ATTUNE_INLINE static void each_token(const auto& context, const Body& body) {
    context.stage([&] {
      for (int i = 0; i < shape.rows; ++i) {
        for (int j = 0; j < shape.cols; ++j) {
          for (int k = 0; k < shape.cell; ++k) {
            body((i * shape.cols + j) * shape.cell + k, (j * shape.rows + i) * shape.cell + k);
          }
        }
      }
    });
  }
  ATTUNE_INLINE static void copy(const Scalar* from, int row, Scalar* to, int to_row) {
    for (int j = 0; j < shape.d_model; ++j) to[to_row * shape.d_model + j] = from[row * shape.d_model + j];
  }
};

}  // namespace ATTUNE_NAMESPACE
