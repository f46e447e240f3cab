// A trained factor per feature at the end of a residual branch (Touvron et al., "Going deeper with Image
// Transformers", 2021; LayerScale in CaiT, DINOv2 and timm), or one factor for all features (Bachlechner et
// al., "ReZero is All You Need", 2020).
//
//   y = x ∘ w,      dx = dy ∘ w,   dw += Σ_rows dy ∘ x,  for one factor also over the features
//
//   using Branch = attune::Residual<attune::Sequential<Norm, Attention,
//       attune::LayerScale<attune::ScaleShape{.rows = 17, .d_model = 32}>>>;    // x + w ∘ attention(norm(x))
//
// EncoderLayerOf takes a Sequential of attention, or of a network, and its LayerScale (kTimmVitLayer has
// names).
#pragma once

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/scale_features.hpp>
#include <attune/layers/tapeless.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and initial value of `LayerScale`.
struct ScaleShape {
  int rows;               // tokens
  int d_model;            // features of a token
  double initial = 1e-5;  // initial value of all factors; ImageNet's ViTs use 1e-5, CaiT 0.1 to 1e-6 by depth
  bool shared = false;    // one factor for all features: ReZero, which starts at 0
};

namespace detail {

/// `count` factors, initially all shape.initial. They are trained with norms (BiasesAndNorms).
template <class Scalar, auto shape, int count, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
struct InitialFactors {
  using Form = attune::Form<Matrix, Vector>;
  [[no_unique_address]] Vector<Scalar, 1, count> weight;
  ATTUNE_VISITED_FIELDS(NormWeight(weight))
  template <class Initializer>
  void initialize(const Initializer&, Rng&) {
    fill(weight, Scalar(static_cast<kernels::Real<Scalar>>(shape.initial)));
  }
};

}  // namespace detail

/// y = x ∘ w, for x[rows, d_model], w[1, d_model] or one factor w[1, 1], y[rows, d_model]. No tape.
template <ScaleShape scale_shape, class ScalarType = float>
struct LayerScale : detail::Tapeless<LayerScale<scale_shape, ScalarType>>, detail::InputReadForWeight {
  static constexpr ScaleShape shape = [] {
    static_assert(detail::Holds<(scale_shape.rows > 0 && scale_shape.d_model > 0)>,
                  "attune::LayerScale: rows and d_model must be positive; set both in ScaleShape");
    static_assert(detail::Holds<(scale_shape.initial >= -1e30 && scale_shape.initial <= 1e30)>,
                  "attune::LayerScale: initial must be a finite number, at most 1e30");
    return detail::at_least_one(scale_shape, &ScaleShape::rows, &ScaleShape::d_model);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = LayerScale<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = LayerScale<detail::with(shape, &ScaleShape::rows, tokens), Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("LayerScale");
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  static constexpr Abilities kAbilities = detail::kInPlaceByToken;
  using Base = detail::Tapeless<LayerScale>;
  using Base::forward, Base::backward;

  /// The factors, initially all `initial`. They are trained with norms (BiasesAndNorms).
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf =
      detail::InitialFactors<Scalar, shape, shape.shared ? 1 : shape.d_model, Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`, but backward then has no input.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Call& context = {}) {
    scale(parameters, x.data, y.data, context);
  }
  /// Overwrites dx[rows, d_model], from dy[rows, d_model]; adds to the gradients. `dx` may be `dy` or `x`.
  /// With a mask, a token with dy zero adds nothing, whatever it holds.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Output> dy, Dx&& dx,
                       Gradients& gradients, const Call& context = {}) {
    const auto input = [&]() ATTUNE_INLINE_LAMBDA {
      detail::if_wanted<Input>(
          dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA { scale(parameters, dy.data, to.data, context); });
    };
    const auto add = [&](Scalar* sums) ATTUNE_INLINE_LAMBDA {
      kernels::add_feature_products<shape.shared, Call::kSkipsZeros>(
          kernels::size_for_rows<Scalar>(context.template count<shape.rows>()), kWidth, dy.data, x.data,
          sums);
    };
    add_gradient_then_input(gradients.weight, context, add, input);
  }

 private:
  static constexpr auto kWidth = kernels::size_for_rows<Scalar>(std::integral_constant<int, shape.d_model>{});

  static void scale(const auto& parameters, const Scalar* x, Scalar* y, const auto& context) {
    context.template each_token<shape.rows, 2 * shape.d_model>([&](int i) ATTUNE_INLINE_LAMBDA {
      const int row = i * shape.d_model;
      kernels::scale_features<shape.shared>(kWidth, x + row, parameters.weight.data(), y + row);
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
