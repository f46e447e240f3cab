// A linear layer over tokens.
//
//   y = x·W + b,      dx = dy·Wᵀ,   dW += xᵀ·dy,   db += Σ_rows dy
//
// W is [d_in, d_out], row-major. PyTorch's `nn.Linear.weight` is its transpose, and can be read in place
// (weights/weights.hpp).
#pragma once

#include <attune/core/initialize.hpp>
#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/tapeless.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `Linear`.
struct LinearShape {
  int rows;          // tokens
  int d_in;          // features of an input token
  int d_out;         // features of an output token
  bool bias = true;  // whether there is a bias
};

/// W and b of a Linear; without a bias, W alone. Matrix and Vector choose the storage of each
/// (core/parameters.hpp).
template <class Scalar, int d_in, int d_out, bool kBias, template <class, int, int> class Matrix = Tensor,
          template <class, int, int> class Vector = Matrix>
struct LinearParameters {
  using Form = attune::Form<Matrix, Vector>;
  [[no_unique_address]] Matrix<Scalar, d_in, d_out> weight;
  [[no_unique_address]] Vector<Scalar, 1, d_out> bias;
  ATTUNE_FIELDS(Weight(weight), Bias(bias))
};
template <class Scalar, int d_in, int d_out, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
struct LinearParameters<Scalar, d_in, d_out, false, Matrix, Vector> {
  using Form = attune::Form<Matrix, Vector>;
  [[no_unique_address]] Matrix<Scalar, d_in, d_out> weight;
  ATTUNE_FIELDS(Weight(weight))
};

/// y = x·W + b, for x[rows, d_in], W[d_in, d_out], y[rows, d_out]. dx = dy·Wᵀ, dW += xᵀ·dy, db += Σ rows of
/// dy.
template <LinearShape linear_shape, class ScalarType = float>
struct Linear : detail::Tapeless<Linear<linear_shape, ScalarType>>, detail::InputReadForWeight {
  static constexpr LinearShape shape = [] {
    static_assert(detail::Holds<(linear_shape.rows > 0 && linear_shape.d_in > 0 && linear_shape.d_out > 0)>,
                  "attune::Linear: rows, d_in and d_out must be positive; set all three in LinearShape");
    return detail::at_least_one(linear_shape, &LinearShape::rows, &LinearShape::d_in, &LinearShape::d_out);
  }();
  using Scalar = ScalarType;
  static constexpr std::uint32_t kFingerprint = fingerprint("Linear");
  template <class Other>
  using WithScalar = Linear<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = Linear<detail::with(shape, &LinearShape::rows, tokens), Scalar>;
  using Input = Tensor<Scalar, shape.rows, shape.d_in>;
  using Output = Tensor<Scalar, shape.rows, shape.d_out>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = LinearParameters<Scalar, shape.d_in, shape.d_out, shape.bias, Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities = [] {
    Abilities abilities = detail::kInPlaceByToken;
    abilities.output_may_be_input = false;
    if (shape.rows > kernels::kDepthBlock) {  // several blocks per sum of a gradient
      abilities.lanes = Lanes::kNone;
      abilities.additions = Additions::kMany;
    }
    return abilities;
  }();
  using Base = detail::Tapeless<Linear>;
  using Base::forward, Base::backward;

  /// y[rows, d_out] = x[rows, d_in]·W + b. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Call& context = {}) {
    const Scalar* bias = detail::numbers_of_bias<Scalar>(parameters);
    if constexpr (std::is_same_v<decltype(parameters.weight), Tensor<Scalar, shape.d_in, shape.d_out>>) {
      multiply_rows(x, parameters.weight, bias, y, context);
    } else {
      multiply_by(x, parameters.weight, bias, y, context);
    }
  }

 private:
  ATTUNE_INLINE static void multiply_rows(ConstView<Input> x, const auto& weight,
                                          [[maybe_unused]] const Scalar* bias, View<Output> y,
                                          const auto& context) {
    context.template tokens<shape.rows, shape.d_in * shape.d_out>(
        [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          const auto from = x.template rows_at<count>(first);
          const auto to = y.template rows_at<count>(first);
          multiply(from, weight, to,
                   detail::first_if<shape.bias>(kernels::AddBias<Scalar>{bias}, kernels::Assign{}));
        });
  }
  // A set has its role in its type, a weight does not: constants of one shape and storage share
  // this function.
  template <class Weight, AnyContext Call>
  [[gnu::noinline]] static void multiply_by(ConstView<Input> x, const Weight& weight, const Scalar* bias,
                                            View<Output> y, const Call& context) {
    multiply_rows(x, weight, bias, y, context);
  }
  template <class Gradient>
  ATTUNE_INLINE static void add_to_weight(ConstView<Input> x, ConstView<Output> dy, const Gradient& gradient,
                                          const auto& context, const auto& by_rows) {
    by_rows.template rows<shape.d_in, shape.rows * shape.d_out>(
        [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
          add_product(context.first(x).transpose().template rows_at<count>(first), context.first(dy),
                      gradient.template rows_at<count>(first), context.zeros());
        });
  }
  // A product of low rank, whose second factor adds up all rows; shared in the same way.
  template <class Gradient, AnyContext Call>
  [[gnu::noinline]] static void add_to_factors(ConstView<Input> x, ConstView<Output> dy,
                                               const Gradient& gradient, const Call& context) {
    add_to_weight(x, dy, gradient, context, context);
  }

 public:
  /// gradients += dL/dW, dL/db.
  template <class Gradients, AnyContext Call = Context<>>
  static void backward_parameters(ConstView<Input> x, ConstView<Output> dy, Gradients& gradients,
                                  const Call& context = {}) {
    if constexpr (std::is_same_v<decltype(gradients.weight), Tensor<Scalar, shape.d_in, shape.d_out>>) {
      add_to_weight(x, dy, view(gradients.weight), context, context.in_any_order());
    } else if constexpr (detail::IsTrained<decltype(gradients.weight)>) {
      add_to_factors(x, dy, view(gradients.weight), context);
    }
    if constexpr (shape.bias) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA { add_column_sums(context.first(dy), view(gradients.bias)); });
    }
  }

  /// dx[rows, d_in] = dy·Wᵀ, or dx += dy·Wᵀ with kernels::Accumulate; nothing for NoGradient. `dx` may not
  /// overlap `dy`.
  template <class Set = Parameters, class Dx, class Epilogue = kernels::Assign, AnyContext Call = Context<>>
  static void backward_input(const Set& parameters, ConstView<Output> dy, Dx&& dx, Epilogue epilogue = {},
                             const Call& context = {}) {
    detail::if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
      context.in_any_order().template tokens<shape.rows, shape.d_in * shape.d_out>(
          [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
            multiply_transposed(dy.template rows_at<count>(first), parameters.weight,
                                to.template rows_at<count>(first), epilogue);
          });
    });
  }

  /// Overwrites x with dx and adds to the gradients.
  template <class Set, class Gradients, AnyContext Call>
  ATTUNE_INLINE static void backward_over_input(const Set& parameters, Input& x, ConstView<Output> dy,
                                                Gradients& gradients, const Call& context) {
    if constexpr (detail::UpdatesAtOnce<decltype(gradients.weight)>) {
      const auto d_rows = context.first(dy);
      update_in_place(context.first(view(x)), d_rows, parameters.weight, view(gradients.weight),
                      context.zeros());
      if constexpr (shape.bias) add_column_sums(d_rows, view(gradients.bias));
    } else {
      backward_parameters(x, dy, gradients, context.without_mask());
      backward_input(parameters, dy, x, kernels::Assign{}, context.unmasked());
    }
  }

  /// dx[rows, n] of n features of x, starting at `first`. `dx` may not overlap `dy`.
  template <class Set, class Dx, AnyContext Call>
  ATTUNE_INLINE static void backward_features(const Set& parameters, ConstView<Output> dy, int first,
                                              const Dx& dx, const Call& context) {
    context.in_any_order().template tokens<shape.rows, Dx::cols * shape.d_out>(
        [&]<int count>(auto row) ATTUNE_INLINE_LAMBDA {
          multiply_transposed_rows(dy.template rows_at<count>(row), parameters.weight, first,
                                   dx.template rows_at<count>(row));
        });
  }

  /// Overwrites dx and adds to the gradients. `dx` may not overlap `dy`, nor `x` with UpdateInBackward. With
  /// a mask, a token with dy zero adds nothing, whatever it holds.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Output> dy, Dx&& dx,
                       Gradients& gradients, const Call& context = {}) {
    const auto& zero_skipping_context = context.skipping_zeros(context.first(x));
    in_order_of_updates<detail::UpdatesAtOnce<decltype(gradients.weight)>>(
        [&]() ATTUNE_INLINE_LAMBDA { backward_parameters(x, dy, gradients, zero_skipping_context); },
        [&]() ATTUNE_INLINE_LAMBDA { backward_input(parameters, dy, dx, kernels::Assign{}, context); });
  }
};

}  // namespace ATTUNE_NAMESPACE
