// The numbers of all tokens in rows of another length. Flatten has one row, for a Linear of the whole
// sequence; with fewer rows than tokens, each row has some tokens side by side: patches over time (ViT for
// one dimension). Transpose makes a row of each feature, for a Linear over tokens (Tolstikhin et al.,
// "MLP-Mixer", 2021).
//
//   y[out_rows, …] has the numbers of x[rows, d_model] in the same order, or those of xᵀ;   dx has those of
//   dy
//
//   using Head = attune::Sequential<attune::Flatten<17, 32>,
//                                   attune::Linear<attune::LinearShape{.rows = 1, .d_in = 17 * 32, .d_out =
//                                   4}>>;
//   using MixTokens = attune::Residual<attune::Sequential<Norm, attune::Transpose<17, 32>, OverTokens,
//                                                         attune::Transpose<32, 17>>>;
#pragma once

#include <type_traits>

#include <attune/execution/attention_mask.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// The order in which `Reshape` reads x.
enum class ReshapeOrder {
  kTokens = 0,    // token by token
  kFeatures = 1,  // feature by feature: xᵀ
};

/// Dimensions of `Reshape`.
struct ReshapeShape {
  int rows;                                    // tokens of x
  int d_model;                                 // features of a token
  int out_rows = 1;                            // rows of y, a divisor of rows·d_model
  ReshapeOrder order = ReshapeOrder::kTokens;  // of the numbers
};

/// y[out_rows, rows·d_model/out_rows] of x[rows, d_model]. No tape. Reads only padding from a mask: in y it
/// is zeros, without a gradient. Feature by feature, with as many rows as tokens, it takes no mask and no
/// length, which would hide features in the layers behind.
template <ReshapeShape reshape_shape, class ScalarType = float>
struct Reshape : detail::Unparameterized<Reshape<reshape_shape, ScalarType>>, detail::InputUnread {
  static constexpr ReshapeShape shape = [] {
    static_assert(
        detail::Holds<(reshape_shape.rows > 0 && reshape_shape.d_model > 0 && reshape_shape.out_rows > 0)>,
        "attune::Reshape: rows, d_model and out_rows must be positive; set the first two in "
        "ReshapeShape");
    static_assert(
        detail::Holds<(
            reshape_shape.rows * reshape_shape.d_model % detail::at_least_one(reshape_shape.out_rows) == 0)>,
        "attune::Reshape: rows of one length need an out_rows that divides rows * d_model");
    return detail::at_least_one(reshape_shape, &ReshapeShape::rows, &ReshapeShape::d_model,
                                &ReshapeShape::out_rows);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Reshape<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("Reshape", detail::OnlyIf{shape.order != ReshapeOrder::kTokens}, shape.order);
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Tensor<Scalar, shape.out_rows, Input::size / shape.out_rows>;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kPadding, .takes_context = true, .takes_length = true, .lanes = Lanes::kAll};
  using Base = detail::Unparameterized<Reshape>;
  using Base::forward, Base::backward;

  /// `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    static_assert(
        detail::Holds<(shape.order != ReshapeOrder::kFeatures || Output::rows != shape.rows ||
                       !(Call::kHasLength || kMasks<typename Call::Mask>))>,
        "attune::Reshape: feature by feature, with as many rows as tokens, a length or a mask would "
        "hide features; leave it out");
    context.stage([&] { copy_valid<false>(x.data, y.data, context); });
  }
  /// Overwrites dx[rows, d_model], from dy. `dx` may not overlap `dy`.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input>, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.stage([&] { copy_valid<true>(dy.data, dx.data, context); });
  }

 private:
  // Numbers of valid tokens, zeros for others; `back`, from y's order to x's.
  template <bool back, class Call>
  static void copy_valid(const Scalar* from, Scalar* to, const Call& context) {
    for (int token = 0; token < shape.rows; ++token) {
      const bool valid = context.template is_valid<shape.rows>(token);
      for (int feature = 0; feature < shape.d_model; ++feature) {
        const int x = token * shape.d_model + feature;
        const int y = shape.order == ReshapeOrder::kFeatures ? feature * shape.rows + token : x;
        to[back ? x : y] = valid ? from[back ? y : x] : Scalar(0);
      }
    }
  }
};

/// All tokens of x[rows, features] in one row: PyTorch's nn.Flatten of a sequence.
template <int rows, int features, class Scalar = float>
using Flatten = Reshape<ReshapeShape{rows, features}, Scalar>;

/// A row for each feature of x[rows, features]: PyTorch's x.transpose(1, 2).
template <int rows, int features, class Scalar = float>
using Transpose = Reshape<ReshapeShape{rows, features, features, ReshapeOrder::kFeatures}, Scalar>;

}  // namespace ATTUNE_NAMESPACE
