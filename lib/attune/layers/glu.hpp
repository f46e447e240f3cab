// A gated linear unit of features side by side: half of them gate the others (Dauphin et al., "Language
// Modeling with Gated Convolutional Networks", 2017; Shazeer, "GLU Variants Improve Transformer", 2020).
//
//   x = [a, b]:      y = a ∘ f(b),   da = dy ∘ f(b),   db = dy ∘ a ∘ f′(b)       or y = f(a) ∘ b
//
// Behind a Linear to 2·d features, it is one packed weight of a gated network. GatedFeedForward has two
// weights, and recomputes the product in backward:
//
//   using Network = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 17, .d_in = 32, .d_out =
//   128}>,
//       attune::Glu<attune::GluShape{.rows = 17, .d_model = 64, .activation = attune::Activation::kSilu}>,
//       attune::Linear<attune::LinearShape{.rows = 17, .d_in = 64, .d_out = 32}>>;
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/activation.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// The half of the features that is the gate.
enum class GluGate {
  kSecond = 0,  // y = a ∘ f(b), as PyTorch's nn.GLU
  kFirst = 1    // y = f(a) ∘ b
};

/// Dimensions and options of `Glu`.
struct GluShape {
  int rows;                                      // tokens
  int d_model;                                   // features of a token of y; x has twice as many
  Activation activation = Activation::kSigmoid;  // of the gate
  GluGate gate = GluGate::kSecond;               // the half that is the gate
};

/// y[rows, d_model] of x[rows, 2·d_model]. No tape: backward recomputes the gate.
template <GluShape glu_shape, class ScalarType = float>
struct Glu : detail::Unparameterized<Glu<glu_shape, ScalarType>> {
  static constexpr GluShape shape = [] {
    static_assert(detail::Holds<(glu_shape.rows > 0 && glu_shape.d_model > 0)>,
                  "attune::Glu: rows and d_model must be positive; set both in GluShape");
    return detail::at_least_one(glu_shape, &GluShape::rows, &GluShape::d_model);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Glu<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = Glu<detail::with(shape, &GluShape::rows, tokens), Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Glu", shape.activation, shape.gate);
  using Input = Tensor<Scalar, shape.rows, 2 * shape.d_model>;
  using Output = Tensor<Scalar, shape.rows, shape.d_model>;
  static constexpr Abilities kAbilities =
      detail::with(detail::kInPlaceByToken, &Abilities::output_may_be_input, false);
  using Base = detail::Unparameterized<Glu>;
  using Base::forward, Base::backward;

  /// `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.template each_token<shape.rows, kWork>([&](int i) ATTUNE_INLINE_LAMBDA {
      const Scalar* const row = x.data + i * Input::cols;
      kernels::gate<shape.activation>(shape.d_model, row + kGate, row + kValue, y.data + i * shape.d_model);
    });
  }
  /// Overwrites dx[rows, 2·d_model], from dy[rows, d_model]. `dx` may be `x`, and may not overlap `dy`. With
  /// a mask, a token with dy zero gets dx zero, whatever it holds.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input> x, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.in_any_order().template each_token<shape.rows, 2 * kWork>([&](int i) ATTUNE_INLINE_LAMBDA {
      const Scalar *const row = x.data + i * Input::cols, *const gradient = dy.data + i * shape.d_model;
      Scalar* const to_row = dx.data + i * Input::cols;
      const bool skips = Call::kSkipsZeros && kernels::is_zero_row(shape.d_model, gradient);
      for (int j = 0; j < Input::cols; ++j) to_row[j] = skips ? Scalar(0) : row[j];
      if (!skips)
        kernels::gate_backward<shape.activation>(shape.d_model, gradient, to_row + kGate, to_row + kValue);
    });
  }

 private:
  static constexpr int kGate = shape.gate == GluGate::kFirst ? 0 : shape.d_model;
  static constexpr int kValue = shape.d_model - kGate;
  static constexpr int kWork = 24 * shape.d_model;
};

}  // namespace ATTUNE_NAMESPACE
