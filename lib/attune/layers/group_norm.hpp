// Group normalization of a sequence (Wu and He, "Group Normalization", 2018): the features are in groups, and
// each group has one mean and one variance over all valid tokens.
//
//   x̂ = (x − mean x)/√(var x + ε) over the tokens and features of a group,   y = x̂ ∘ w + b
//
//   db += Σ_tokens dy,   dw += Σ_tokens dy ∘ x̂,   dx̂ = dy ∘ w
//   dx = (dx̂ − mean dx̂ − x̂ · mean(dx̂ ∘ x̂))/√(var x + ε),  means over the group
#pragma once

#include <attune/execution/stream.hpp>
#include <attune/layers/layer_norm.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and options of `GroupNorm`, PyTorch's nn.GroupNorm.
struct GroupNormShape {
  int rows;               // tokens
  int d_model;            // features of a token: num_channels
  int groups;             // groups of features, a divisor of d_model
  double epsilon = 1e-5;  // added to the variances
  bool affine = true;     // whether there are a factor and a bias for each feature
};

/// PyTorch's nn.GroupNorm of [batch, d_model, rows], of tokens x[rows, d_model]. Reads only padding from a
/// mask, and leaves it out of the statistics. A group whose sum of squares overflows becomes NaN.
template <GroupNormShape norm_shape, class ScalarType = float>
struct GroupNorm {
  static constexpr GroupNormShape shape = [] {
    static_assert(detail::Holds<(norm_shape.rows > 0 && norm_shape.d_model > 0 && norm_shape.groups > 0)>,
                  "attune::GroupNorm: rows, d_model and groups must be positive; set all three in "
                  "GroupNormShape");
    static_assert(detail::Holds<(norm_shape.d_model % detail::at_least_one(norm_shape.groups) == 0)>,
                  "attune::GroupNorm: groups must divide d_model");
    static_assert(detail::Holds<(norm_shape.epsilon >= 0 && norm_shape.epsilon <= 1e30)>,
                  "attune::GroupNorm, ReversibleNorm: epsilon must be in [0, 1e30]");
    static_assert(
        detail::Holds<(!(norm_shape.epsilon > 0) ||
                       static_cast<kernels::Real<ScalarType>>(norm_shape.epsilon) > 0)>,
        "attune::GroupNorm, ReversibleNorm: epsilon is too small for the scalar, which rounds it to 0");
    return detail::at_least_one(norm_shape, &GroupNormShape::rows, &GroupNormShape::d_model,
                                &GroupNormShape::groups);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = GroupNorm<shape, Other>;
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(
        detail::Holds<(tokens < 0)>,
        "attune: GroupNorm needs statistics of the whole sequence, so it does not run token by token; "
        "use LayerNorm");
  };
  static constexpr std::uint32_t kFingerprint = fingerprint("GroupNorm", shape.groups, shape.epsilon);
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = NormParameters<Scalar, shape.d_model, shape.affine, shape.affine, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,
                                        .takes_context = true,
                                        .takes_length = true,
                                        .lanes = Lanes::kAll,
                                        .additions = Additions::kOnce};
  /// A number for each feature, the same within a group.
  using Features = Tensor<Scalar, 1, shape.d_model>;
  struct Tape {
    Features mean;
    Features inverse;  // 1/√(var + ε)
  };
  /// Sums over tokens, then the means of groups.
  struct Scratch {
    Features gradients;  // of dy, then of dx̂
    Features products;   // of dy ∘ x̂, then of dx̂ ∘ x̂
  };
  using InferenceScratch = Tape;

  /// Inference. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& tape,
                      const Call& context = {}) {
    context.stage([&] { find_statistics(x, tape, context); });
    normalize(parameters, x, tape, y, context);
  }
  /// y of x and of the statistics that forward kept of it. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void normalize(const Set& parameters, ConstView<Input> x, const Tape& tape, View<Output> y,
                        const Call& context = {}) {
    context.template each_token<shape.rows, 8 * shape.d_model>([&](int i) {
      kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        P value = normalized<P>(x, tape, i, j);
        if (shape.affine) {
          value = kernels::multiply_add(value,
                                        kernels::load<P>(detail::numbers_of_weight<Scalar>(parameters) + j),
                                        kernels::load<P>(detail::numbers_of_bias<Scalar>(parameters) + j));
        }
        kernels::store(y.data + i * shape.d_model + j, value);
      });
    });
  }
  /// Training: the same; the tape keeps the statistics. Backward needs x.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    forward(parameters, x, y, tape, context);
  }
  /// Overwrites dx[rows, d_model], from dy; adds to the gradients. `dx` may be `dy` or `x`. Padding gets dx
  /// zero and adds nothing.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, const Tape& tape, ConstView<Output> dy,
                       Dx&& dx, [[maybe_unused]] Gradients& gradients, Scratch& scratch,
                       const Call& context = {}) {
    context.stage([&] {
      sum_gradients(x, tape, dy, scratch, context);
      if constexpr (shape.affine) add_to_parameters(scratch, gradients);
      mean_of_groups(parameters, scratch.gradients, context);
      mean_of_groups(parameters, scratch.products, context);
    });
    detail::if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
      context.in_any_order().template each_token<shape.rows, 8 * shape.d_model>([&](int i) {
        const bool valid = context.template is_valid<shape.rows>(i);
        kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
          const P of_input = input_gradient<P>(parameters, x, tape, dy, scratch, i, j);
          kernels::store(to.data + i * shape.d_model + j,
                         valid ? of_input : kernels::broadcast<P>(Scalar(0)));
        });
      });
    });
  }

 private:
  static constexpr int kInGroup = shape.d_model / shape.groups;  // features

  template <class P>
  ATTUNE_INLINE static P centered(ConstView<Input> x, const Tape& tape, int i, int j) {
    return kernels::subtract(kernels::load<P>(x.data + i * shape.d_model + j),
                             kernels::load<P>(tape.mean.data() + j));
  }
  template <class P>
  ATTUNE_INLINE static P normalized(ConstView<Input> x, const Tape& tape, int i, int j) {
    return kernels::multiply(centered<P>(x, tape, i, j), kernels::load<P>(tape.inverse.data() + j));
  }
  // dx̂ of a weight, or of none.
  template <class P>
  ATTUNE_INLINE static P scaled(const P& gradient, const auto& parameters, int j) {
    if (!shape.affine) return gradient;
    return kernels::multiply(gradient, kernels::load<P>(detail::numbers_of_weight<Scalar>(parameters) + j));
  }
  template <class P>
  ATTUNE_INLINE static P input_gradient(const auto& parameters, ConstView<Input> x, const Tape& tape,
                                        ConstView<Output> dy, const Scratch& scratch, int i, int j) {
    const P gradient = scaled(kernels::load<P>(dy.data + i * shape.d_model + j), parameters, j);
    const P difference = kernels::subtract(gradient, kernels::load<P>(scratch.gradients.data() + j));
    const P projected = kernels::subtract_product(difference, normalized<P>(x, tape, i, j),
                                                  kernels::load<P>(scratch.products.data() + j));
    return kernels::multiply(projected, kernels::load<P>(tape.inverse.data() + j));
  }

  // sums(j) = Σ term(i, j) over the valid tokens, in rising order.
  static void sum_tokens(Features& sums, const auto& context, const auto& term) {
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      P total = kernels::broadcast<P>(Scalar(0));
      for (int i = 0; i < shape.rows; ++i) {
        if (context.template is_valid<shape.rows>(i))
          total = kernels::add(total, term.template operator()<P>(i, j));
      }
      kernels::store(sums.data() + j, total);
    });
  }
  // Sums of features become the mean of their group's numbers.
  static void to_means(Features& sums, const auto& context) {
    int tokens = 0;
    for (int i = 0; i < shape.rows; ++i) tokens += context.template is_valid<shape.rows>(i);
    const auto count = Scalar(static_cast<kernels::Real<Scalar>>(detail::at_least_one(tokens * kInGroup)));
    for (int first = 0; first < shape.d_model; first += kInGroup) {
      Scalar total(0);
      for (int j = first; j < first + kInGroup; ++j) total = kernels::add(total, sums(0, j));
      for (int j = first; j < first + kInGroup; ++j) sums(0, j) = kernels::divide(total, count);
    }
  }

  static void find_statistics(ConstView<Input> x, Tape& tape, const auto& context) {
    sum_tokens(tape.mean, context, [&]<class P>(int i, int j) ATTUNE_INLINE_LAMBDA {
      return kernels::load<P>(x.data + i * shape.d_model + j);
    });
    to_means(tape.mean, context);
    sum_tokens(tape.inverse, context, [&]<class P>(int i, int j) ATTUNE_INLINE_LAMBDA {
      const P difference = centered<P>(x, tape, i, j);
      return kernels::multiply(difference, difference);
    });
    to_means(tape.inverse, context);
    const auto epsilon = Scalar(static_cast<kernels::Real<Scalar>>(shape.epsilon));
    for (int j = 0; j < shape.d_model; ++j) {
      const Scalar variance = kernels::add(tape.inverse(0, j), epsilon);
      tape.inverse(0, j) = kernels::inverse_of_deviation(kernels::square_root(variance));
    }
  }
  static void sum_gradients(ConstView<Input> x, const Tape& tape, ConstView<Output> dy, Scratch& scratch,
                            const auto& context) {
    sum_tokens(scratch.gradients, context, [&]<class P>(int i, int j) ATTUNE_INLINE_LAMBDA {
      return kernels::load<P>(dy.data + i * shape.d_model + j);
    });
    sum_tokens(scratch.products, context, [&]<class P>(int i, int j) ATTUNE_INLINE_LAMBDA {
      return kernels::multiply(kernels::load<P>(dy.data + i * shape.d_model + j),
                               normalized<P>(x, tape, i, j));
    });
  }
  static void add_to_parameters(const Scratch& scratch, auto& gradients) {
    add_rows(view(gradients.weight), [&](int, const auto& row) ATTUNE_INLINE_LAMBDA {
      kernels::add_to(shape.d_model, scratch.products.data(), row.data);
    });
    add_rows(view(gradients.bias), [&](int, const auto& row) ATTUNE_INLINE_LAMBDA {
      kernels::add_to(shape.d_model, scratch.gradients.data(), row.data);
    });
  }
  static void mean_of_groups(const auto& parameters, Features& sums, const auto& context) {
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      kernels::store(sums.data() + j, scaled(kernels::load<P>(sums.data() + j), parameters, j));
    });
    to_means(sums, context);
  }
};

}  // namespace ATTUNE_NAMESPACE
