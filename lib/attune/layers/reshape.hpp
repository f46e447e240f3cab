// The numbers of all tokens in rows of another length. Flatten has one row, for a Linear of the whole
// sequence; with fewer rows than tokens, each row has some tokens side by side: patches over time (ViT for
// one dimension).
//
//   y[out_rows, …] has the numbers of x[rows, d_model] in the same order;      dx has those of dy
//
//   using Head = attune::Sequential<attune::Flatten<17, 32>,
//                                   attune::Linear<attune::LinearShape{.rows = 1, .d_in = 17 * 32, .d_out =
//                                   4}>>;
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `Reshape`.
struct ReshapeShape {
  int rows;          // tokens of x
  int d_model;       // features of a token
  int out_rows = 1;  // rows of y, a divisor of rows·d_model
};

namespace detail {

template <ReshapeShape shape>
constexpr ReshapeShape checked_reshape_shape() {
  static_assert(Holds<(shape.rows > 0 && shape.d_model > 0 && shape.out_rows > 0)>,
                "attune::Reshape: rows, d_model and out_rows must be positive; set the first two in "
                "ReshapeShape");
  static_assert(Holds<(shape.rows * shape.d_model % at_least_one(shape.out_rows) == 0)>,
                "attune::Reshape: rows of one length need an out_rows that divides rows * d_model");
  return at_least_one(shape, &ReshapeShape::rows, &ReshapeShape::d_model, &ReshapeShape::out_rows);
}

}  // namespace detail

/// y[out_rows, rows·d_model/out_rows] of x[rows, d_model]. No tape. Reads only padding from a mask: in y it
/// is zeros, without a gradient.
template <ReshapeShape reshape_shape, class ScalarType = float>
struct Reshape {
  static constexpr ReshapeShape shape = detail::checked_reshape_shape<reshape_shape>();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Reshape<shape, Other>;
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(detail::Holds<(tokens < 0)>,
                  "attune: Reshape and Flatten need the whole sequence, so they do not run token by token");
  };
  static constexpr std::uint32_t kFingerprint = fingerprint("Reshape");
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Tensor<Scalar, shape.out_rows, Input::size / shape.out_rows>;
  using Parameters = NoParameters;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kPadding, .takes_context = true, .takes_length = true, .lanes = Lanes::kAll};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  /// Inference. `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.stage([&] { copy_valid(x.data, y.data, context); });
  }
  /// Training. `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape&, Scratch&,
                      const Call& context = {}) {
    context.stage([&] { copy_valid(x.data, y.data, context); });
  }
  /// Overwrites dx[rows, d_model], from dy. `dx` may not overlap `dy`.
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input>, const Tape&, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Call& context = {}) {
    if constexpr (kWanted<Dx>) {
      context.stage([&] { copy_valid(dy.data, detail::sink<Input>(dx).data, context); });
    }
  }

 private:
  // Numbers of valid tokens, zeros for others.
  static void copy_valid(const Scalar* from, Scalar* to, const auto& context) {
    for (int token = 0; token < shape.rows; ++token) {
      const bool valid = context.template is_valid<shape.rows>(token);
      for (int i = token * shape.d_model; i < (token + 1) * shape.d_model; ++i)
        to[i] = valid ? from[i] : Scalar(0);
    }
  }
};

/// All tokens of x[rows, features] in one row: PyTorch's nn.Flatten of a sequence.
template <int rows, int features, class Scalar = float>
using Flatten = Reshape<ReshapeShape{rows, features}, Scalar>;

}  // namespace ATTUNE_NAMESPACE
