// Layer normalization of tokens (Ba et al., "Layer Normalization", 2016), forward and backward. Beside it:
// root-mean-square normalization (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019), and the
// norm by standard deviation of "The Annotated Transformer" (Rush, 2018).
//
//   LayerNorm:      x̂ = (x − mean x) / √(var x + ε),   y = x̂ ∘ w + b      var divides by d_model
//   RmsNorm:        x̂ = x / √(mean x² + ε),            y = x̂ ∘ w
//   DeviationNorm:  x̂ = (x − mean x) / (s + ε),        y = x̂ ∘ w + b      s² divides by d_model − 1
//
//   dw += Σ_rows dy ∘ x̂,   db += Σ_rows dy,   dx̂ = dy ∘ w
//   dx = (dx̂ − mean dx̂ − x̂ · mean(dx̂ ∘ x̂)) / √(var x + ε)             RmsNorm: without mean dx̂
//   dx = (dx̂ − mean dx̂ − x̂ · Σ(dx̂ ∘ x̂)·(s + ε)/((d_model − 1)·s)) / (s + ε)        DeviationNorm
#pragma once

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/normalize.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Size and options of these layers. PyTorch's elementwise_affine sets both weight and bias.
struct NormShape {
  int rows;               // tokens
  int d_model;            // features of a token, the axis of normalization
  double epsilon = 1e-5;  // PyTorch's default for LayerNorm; The Annotated Transformer has 1e-6
  bool weight = true;     // whether there is a factor per feature
  bool bias = weight;     // RmsNorm has none
};

/// w and b, each optional, in the given storage.
template <class Scalar, int d_model, bool kWeight, bool kBias,
          template <class, int, int> class Vector = Tensor>
struct NormParameters {
  using Form = attune::Form<Vector, Vector>;
  [[no_unique_address]] Vector<Scalar, 1, d_model> weight;
  [[no_unique_address]] Vector<Scalar, 1, d_model> bias;
  ATTUNE_FIELDS(NormWeight(weight), NormBias(bias))
};
template <class Scalar, int d_model, template <class, int, int> class Vector>
struct NormParameters<Scalar, d_model, true, false, Vector> {
  using Form = attune::Form<Vector, Vector>;
  [[no_unique_address]] Vector<Scalar, 1, d_model> weight;
  ATTUNE_FIELDS(NormWeight(weight))
};
template <class Scalar, int d_model, template <class, int, int> class Vector>
struct NormParameters<Scalar, d_model, false, false, Vector> : NoParameters {
  using Form = attune::Form<Vector, Vector>;
};

namespace detail {

// Memory for backward besides the input: one or two numbers per token.
template <class Scalar, int kRows, int kCols, kernels::Normalization kind>
struct NormTape {
  Tensor<Scalar, kRows, 1> mean_offset;        // mean x minus x's first feature
  Tensor<Scalar, kRows, 1> inverse_deviation;  // 1/√(var + ε)

  void keep(int row, const kernels::RowStatistics<Scalar>& statistics) {
    mean_offset.values[row] = statistics.offset;
    inverse_deviation.values[row] = statistics.inverse;
  }
  [[nodiscard]] kernels::RowStatistics<Scalar> statistics(int row, const Scalar* x) const {
    return {x[row * kCols], mean_offset.values[row], inverse_deviation.values[row]};
  }
  [[nodiscard]] const Scalar* offsets() const { return mean_offset.data(); }
  [[nodiscard]] const Scalar* inverses() const { return inverse_deviation.data(); }
};
template <class Scalar, int kRows, int kCols>
struct NormTape<Scalar, kRows, kCols, kernels::Normalization::kRootMeanSquare> {
  Tensor<Scalar, kRows, 1> inverse_root_mean_square;  // 1/√(mean x² + ε)

  void keep(int row, const kernels::RowStatistics<Scalar>& statistics) {
    inverse_root_mean_square.values[row] = statistics.inverse;
  }
  [[nodiscard]] kernels::RowStatistics<Scalar> statistics(int row, const Scalar*) const {
    return {Scalar(0), Scalar(0), inverse_root_mean_square.values[row]};
  }
  [[nodiscard]] const Scalar* offsets() const { return nullptr; }
  [[nodiscard]] const Scalar* inverses() const { return inverse_root_mean_square.data(); }
};

template <NormShape norm_shape, class ScalarType, kernels::Normalization kind>
struct Norm {
  static constexpr NormShape shape = [] {
    static_assert(Holds<(norm_shape.rows > 0 && norm_shape.d_model > 0)>,
                  "attune::LayerNorm, RmsNorm, DeviationNorm: rows and d_model must be positive; set both in "
                  "NormShape");
    static_assert(Holds<(norm_shape.epsilon >= 0 && norm_shape.epsilon <= 1e30)>,
                  "attune::LayerNorm, RmsNorm, DeviationNorm: epsilon must be in [0, 1e30]");
    static_assert(
        Holds<(!(norm_shape.epsilon > 0) || static_cast<kernels::Real<ScalarType>>(norm_shape.epsilon) > 0)>,
        "attune::LayerNorm, RmsNorm, DeviationNorm: epsilon is too small for the scalar, which rounds it to "
        "0");
    static_assert(
        Holds<(norm_shape.weight || !norm_shape.bias)>,
        "attune::LayerNorm, DeviationNorm: a bias needs a weight; leave out both with .weight = false");
    return at_least_one(norm_shape, &NormShape::rows, &NormShape::d_model);
  }();
  using Scalar = ScalarType;
  static constexpr const NormShape& kShape = shape;
  static constexpr std::uint32_t kFingerprint = fingerprint("Norm", kind, shape.epsilon);
  static constexpr bool kBias = shape.bias && kernels::centers(kind);
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = NormParameters<Scalar, shape.d_model, shape.weight, kBias, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities =
      detail::with(detail::kInPlaceByToken, &Abilities::updates_in_place, true);
  using Tape = NormTape<Scalar, shape.rows, shape.d_model, kind>;
  struct Scratch {};
  struct InferenceScratch {};

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    for_each_row(context, [&](int i) ATTUNE_INLINE_LAMBDA {
      normalize(numbers_of_weight<Scalar>(parameters), numbers_of_bias<Scalar>(parameters), i, x,
                kernels::row_statistics<kind>(kWidth, row(x, i), Scalar(kEpsilon)), y);
    });
  }
  /// The same; also writes the statistics to the tape. Backward needs x: `y` may be `x` only if backward will
  /// not be called.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    forward_rows(numbers_of_weight<Scalar>(parameters), numbers_of_bias<Scalar>(parameters), x, y, tape,
                 context);
  }
  /// Recomputes y from x and forward's tape, trading compute for memory.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void recompute(const Set& parameters, ConstView<Input> x, const Tape& tape, View<Output> y,
                        const Call& context = {}) {
    for_each_row(context, [&](int i) ATTUNE_INLINE_LAMBDA {
      normalize(numbers_of_weight<Scalar>(parameters), numbers_of_bias<Scalar>(parameters), i, x,
                tape.statistics(i, x.data), y);
    });
  }

  /// Overwrites dx[rows, d_model], from dy[rows, d_model]; adds to the gradients. `dx` may be `dy` or `x`.
  /// With a mask, a token with dy zero gets dx zero and adds nothing, whatever it holds.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, const Tape& tape, ConstView<Output> dy,
                       Dx&& dx, [[maybe_unused]] Gradients& gradients, Scratch&, const Call& context = {}) {
    const auto input = [&]() ATTUNE_INLINE_LAMBDA { backward_input(parameters, x, tape, dy, dx, context); };
    if constexpr (!detail::TrainsWeight<Gradients>) {
      input();
    } else {
      // Updated at once, the weight changes behind dx, which reads it and may overwrite x.
      constexpr bool kAtOnce = detail::UpdatesAtOnce<decltype(gradients.weight)>;
      if constexpr (kBias && kAtOnce) add_column_sums(context.first(dy), view(gradients.bias));
      Scalar* d_bias = nullptr;
      if constexpr (kBias && !kAtOnce) d_bias = gradients.bias.data();
      const auto add = [&](Scalar* d_weight) ATTUNE_INLINE_LAMBDA {
        kernels::normalize_rows_backward_parameters<kind, kBias && !kAtOnce, Call::kSkipsZeros>(
            kernels::size_for_rows<Scalar>(context.template count<shape.rows>()), kWidth, x.data,
            tape.offsets(), tape.inverses(), dy.data, d_weight, d_bias);
      };
      add_gradient_then_input(gradients.weight, context, add, input);
    }
  }

 private:
  static constexpr auto kWidth = kernels::size_for_rows<Scalar>(std::integral_constant<int, shape.d_model>{});
  static constexpr auto kEpsilon = static_cast<kernels::Real<Scalar>>(shape.epsilon);

  // One function for all norms of a shape, whatever the types of their sets.
  template <AnyContext Call>
  static void forward_rows(const Scalar* weight, const Scalar* bias, ConstView<Input> x, View<Output> y,
                           Tape& tape, const Call& context) {
    for_each_row(context, [&](int i) ATTUNE_INLINE_LAMBDA {
      const auto statistics = kernels::row_statistics<kind>(kWidth, row(x, i), Scalar(kEpsilon));
      tape.keep(i, statistics);
      normalize(weight, bias, i, x, statistics, y);
    });
  }
  template <AnyContext Call>
  ATTUNE_INLINE static void backward_input(const auto& parameters, ConstView<Input> x, const Tape& tape,
                                           ConstView<Output> dy, auto&& dx, const Call& context) {
    if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
      for_each_row(context.in_any_order(), [&](int i) ATTUNE_INLINE_LAMBDA {
        if (Call::kSkipsZeros && kernels::is_zero_row(shape.d_model, row(dy, i))) {
          for (int j = 0; j < shape.d_model; ++j) to(i, j) = Scalar(0);
          return;
        }
        const auto statistics = tape.statistics(i, x.data);
        kernels::normalize_row_backward<kind, shape.weight>(
            kWidth, row(x, i), statistics,
            kernels::gradient_divisor<kind>(kWidth, statistics, Scalar(kEpsilon)),
            numbers_of_weight<Scalar>(parameters), row(dy, i), row(to, i));
      });
    });
  }

  template <class Body>
  ATTUNE_INLINE static void for_each_row(const auto& context, const Body& body) {
    constexpr int kWorkOfFeature = 8;
    context.template each_token<shape.rows, kWorkOfFeature * shape.d_model>(body);
  }
  static const Scalar* row(ConstView<Input> x, int i) { return x.data + i * shape.d_model; }
  static Scalar* row(View<Input> x, int i) { return x.data + i * shape.d_model; }
  static void normalize(const Scalar* weight, const Scalar* bias, int i, ConstView<Input> x,
                        const kernels::RowStatistics<Scalar>& statistics, View<Output> y) {
    kernels::normalize_row<kind, shape.weight, kBias>(kWidth, row(x, i), statistics, weight, bias, row(y, i));
  }
};

}  // namespace detail

/// PyTorch's nn.LayerNorm over the last axis. A token with equal features becomes the bias. A token whose sum
/// of squares overflows, with features of about 10¹⁹ in float, becomes NaN.
template <NormShape shape, class Scalar = float>
struct LayerNorm : detail::Norm<shape, Scalar, kernels::Normalization::kMeanAndVariance> {
  template <class Other>
  using WithScalar = LayerNorm<shape, Other>;
  using SteppedAs = LayerNorm;
  template <int tokens, CacheShape>
  using Stream = LayerNorm<detail::with(shape, &NormShape::rows, tokens), Scalar>;
};

/// PyTorch's nn.RMSNorm over the last axis. PyTorch's default for ε is the scalar's machine epsilon. A token
/// whose sum of squares overflows becomes NaN, as in LayerNorm.
template <NormShape shape, class Scalar = float>
struct RmsNorm : detail::Norm<shape, Scalar, kernels::Normalization::kRootMeanSquare> {
  template <class Other>
  using WithScalar = RmsNorm<shape, Other>;
  using SteppedAs = RmsNorm;
  template <int tokens, CacheShape>
  using Stream = RmsNorm<detail::with(shape, &NormShape::rows, tokens), Scalar>;
};

/// (x − mean x)/(s + ε) ∘ w + b over the last axis, with the unbiased standard deviation s: x.std(-1) in
/// PyTorch. A token with equal features becomes the bias.
template <NormShape shape, class Scalar = float>
struct DeviationNorm : detail::Norm<shape, Scalar, kernels::Normalization::kMeanAndDeviation> {
  static_assert(detail::Holds<(shape.d_model != 1)>, "attune::DeviationNorm: one feature has no deviation");
  template <class Other>
  using WithScalar = DeviationNorm<shape, Other>;
  using SteppedAs = DeviationNorm;
  template <int tokens, CacheShape>
  using Stream = DeviationNorm<detail::with(shape, &NormShape::rows, tokens), Scalar>;
};

}  // namespace ATTUNE_NAMESPACE
