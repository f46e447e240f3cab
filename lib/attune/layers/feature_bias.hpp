// A trained bias alone: behind a tied head (BERT's cls.predictions.bias), or behind any layer without one.
//
//   yᵢ = xᵢ + b;      db += Σᵢ dyᵢ,  dx = dy
//
//   using Model = attune::Sequential<attune::Tied<attune::Embedding<kWords>, Body>,
//                                    attune::FeatureBias<attune::FeatureBiasShape{.rows = 17, .d_model =
//                                    1000}>>;
#pragma once

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/added_rows.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `FeatureBias`.
struct FeatureBiasShape {
  int rows;     // tokens
  int d_model;  // features of a token
};

/// y[rows, d_model] = x[rows, d_model] + b[1, d_model]. No tape.
template <FeatureBiasShape bias_shape, class ScalarType = float>
struct FeatureBias : detail::AddedRows<FeatureBias<bias_shape, ScalarType>, bias_shape.rows,
                                       bias_shape.d_model, ScalarType> {
  static constexpr FeatureBiasShape shape = [] {
    static_assert(detail::Holds<(bias_shape.rows > 0 && bias_shape.d_model > 0)>,
                  "attune::FeatureBias: rows and d_model must be positive; set both in FeatureBiasShape");
    return detail::at_least_one(bias_shape, &FeatureBiasShape::rows, &FeatureBiasShape::d_model);
  }();
  using Base = detail::AddedRows<FeatureBias, bias_shape.rows, bias_shape.d_model, ScalarType>;
  using Scalar = ScalarType;
  using Base::forward, Base::backward;
  using typename Base::Input, typename Base::Output;
  template <class Other>
  using WithScalar = FeatureBias<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = FeatureBias<detail::with(shape, &FeatureBiasShape::rows, tokens), Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("FeatureBias");

  /// The bias; initially zero.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    [[no_unique_address]] Vector<Scalar, 1, shape.d_model> bias;
    ATTUNE_FIELDS(Bias(bias))
  };
  using Parameters = ParametersOf<Tensor>;

  /// y[rows, d_model] = x + b. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.template each_token<shape.rows, shape.d_model>([&](int i) ATTUNE_INLINE_LAMBDA {
      Scalar* const row = y.data + i * shape.d_model;
      FeatureBias::copy(1, x.data + i * shape.d_model, row);
      kernels::add_to(shape.d_model, parameters.bias.data(), row);
    });
  }
  /// dx[rows, d_model] = dy; adds to the gradient. `dx` may be `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input>, ConstView<Output> dy, Dx&& dx, Gradients& gradients,
                       const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      add_column_sums(context.first(dy), view(gradients.bias));
      FeatureBias::pass_on(context.template count<shape.rows>(), dy, dx);
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
