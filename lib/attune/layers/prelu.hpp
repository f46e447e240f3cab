// The parametric rectifier, a ReLU whose slope below zero is trained (He et al., "Delving Deep into
// Rectifiers", 2015).
//
//   y = x where x > 0, else w·x;     dx = dy where x > 0, else w·dy,   dw += Σ dy·min(x, 0)
//
// w is one number, or one for each feature.
#pragma once

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/prelu.hpp>
#include <attune/layers/layer_scale.hpp>
#include <attune/layers/tapeless.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and initial value of `Prelu`, PyTorch's nn.PReLU.
struct PreluShape {
  int rows;               // tokens
  int d_model;            // features of a token
  int slopes = 1;         // 1 for all features together, or d_model: PyTorch's num_parameters
  double initial = 0.25;  // initial value of all slopes
};

/// PyTorch's nn.PReLU of x[rows, d_model]. No tape.
template <PreluShape prelu_shape, class ScalarType = float>
struct Prelu : detail::Tapeless<Prelu<prelu_shape, ScalarType>> {
  static constexpr PreluShape shape = [] {
    static_assert(detail::Holds<(prelu_shape.rows > 0 && prelu_shape.d_model > 0)>,
                  "attune::Prelu: rows and d_model must be positive; set both in PreluShape");
    static_assert(detail::Holds<(prelu_shape.slopes == 1 || prelu_shape.slopes == prelu_shape.d_model)>,
                  "attune::Prelu: slopes must be 1 or d_model");
    static_assert(detail::Holds<(prelu_shape.initial >= -1e30 && prelu_shape.initial <= 1e30)>,
                  "attune::Prelu: initial must be a finite number, at most 1e30");
    return detail::at_least_one(prelu_shape, &PreluShape::rows, &PreluShape::d_model, &PreluShape::slopes);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Prelu<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = Prelu<detail::with(shape, &PreluShape::rows, tokens), Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Prelu");
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  static constexpr Abilities kAbilities = detail::kInPlaceByToken;
  using Base = detail::Tapeless<Prelu>;
  using Base::forward, Base::backward;

  /// The slopes, initially all `initial`. They are trained with norms (BiasesAndNorms).
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = detail::InitialFactors<Scalar, shape, shape.slopes, Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`, but backward then has no input.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.template each_token<shape.rows, kWork>([&](int i) ATTUNE_INLINE_LAMBDA {
      const int row = i * shape.d_model;
      kernels::prelu<kShared>(kWidth, x.data + row, parameters.weight.data(), y.data + row);
    });
  }
  /// Overwrites dx[rows, d_model], from dy[rows, d_model]; adds to the gradients. `dx` may be `dy` or `x`.
  /// With a mask, a token with dy zero adds nothing, whatever it holds.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Output> dy, Dx&& dx,
                       Gradients& gradients, const Call& context = {}) {
    const auto input = [&]() ATTUNE_INLINE_LAMBDA {
      detail::if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
        context.template each_token<shape.rows, kWork>([&](int i) ATTUNE_INLINE_LAMBDA {
          const int row = i * shape.d_model;
          kernels::prelu_backward<kShared>(kWidth, x.data + row, parameters.weight.data(), dy.data + row,
                                           to.data + row);
        });
      });
    };
    const auto add = [&](Scalar* sums) ATTUNE_INLINE_LAMBDA {
      kernels::add_slope_gradients<kShared, Call::kSkipsZeros>(
          kernels::size_for_rows<Scalar>(context.template count<shape.rows>()), kWidth, x.data, dy.data,
          sums);
    };
    add_gradient_then_input(gradients.weight, context, add, input);
  }

 private:
  static constexpr bool kShared = shape.slopes == 1;
  static constexpr auto kWidth = kernels::size_for_rows<Scalar>(std::integral_constant<int, shape.d_model>{});
  static constexpr int kWork = 2 * shape.d_model;
};

}  // namespace ATTUNE_NAMESPACE
