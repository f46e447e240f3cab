// A trained factor f(t) of the scores, one for all heads or one per head: a temperature, or the scale of
// cosines. It multiplies the queries, which scores are linear in.
//
//   Q'_h = f(t_h)·Q_h,      dQ_h = f(t_h)·dQ'_h,   dt_h += f′(t_h)·Σ dQ'_h ∘ Q_h
#pragma once

#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/rows.hpp>
#include <attune/kernels/ops/scale_features.hpp>
#include <attune/kernels/simd/elementary.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// f(t) and f′(t).
template <class Scalar>
struct ScoreFactor {
  Scalar value;
  Scalar slope;
};
template <ScoreScale kind, class Scalar>
ATTUNE_INLINE ScoreFactor<Scalar> score_factor(const Scalar& t) {
  if (kind == ScoreScale::kFactor) return {t, Scalar(1)};
  if (kind == ScoreScale::kInverse) {
    const Scalar inverse = kernels::divide(Scalar(1), t);
    return {inverse, kernels::multiply(kernels::multiply(Scalar(-1), inverse), inverse)};
  }
  if (kind == ScoreScale::kExponential) {
    const Scalar power = kernels::exponential(t);
    return {power, power};
  }
  const auto limit = Scalar(static_cast<kernels::Real<Scalar>>(4.605170185988091));  // ln 100
  const Scalar power = kernels::exponential(kernels::select_less(limit, t, limit, t));
  return {power, kernels::select_less(limit, t, Scalar(0), power)};
}

/// Parameters and tape of the factor, within MultiHeadAttention's. `kept` has Q[seq_len, num_heads·d_k] as
/// `query`. A tape also has StoredIn<Tensor, …>, as `scores`.
template <AttentionShape shape, class ScalarType>
struct ScoreScales {
  using Scalar = ScalarType;
  static constexpr int kWidth = shape.num_heads * shape.d_k;

  /// t, with f(t) = 1 in the beginning, and 10 for cosines. It is trained with norms (BiasesAndNorms).
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, 1, shape.score_scales> score_scale;
    ATTUNE_VISITED_FIELDS(NormWeight(score_scale))
    template <class Initializer>
    void initialize(const Initializer&, Rng&) {
      constexpr bool kCosines = shape.query_key_norm == QueryKeyNorm::kUnitLength;
      constexpr double kInitial = shape.score_scale == ScoreScale::kFactor ? (kCosines ? 10 : 1)
                                  : shape.score_scale == ScoreScale::kInverse
                                      ? (kCosines ? 0.1 : 1)
                                      : (kCosines ? 2.302585092994046 : 0);
      detail::fill(score_scale, Scalar(static_cast<kernels::Real<Scalar>>(kInitial)));
    }
  };
  using Parameters = ParametersOf<Tensor>;

  /// Q before the factor, for the gradient of a trained factor.
  template <template <class, int, int> class Matrix, class Gradients,
            bool = IsTrained<decltype(Gradients::score_scale)>>
  struct StoredIn {
    Matrix<Scalar, shape.seq_len, kWidth> query;
    static void visit(const auto& visitor, const auto& context, auto&... kept) {
      visitor.rows(context, kept.query...);
    }
  };
  template <template <class, int, int> class Matrix, class Gradients>
  struct StoredIn<Matrix, Gradients, false> : NoOption<shape, Scalar, 2>::template StoredIn<Matrix> {};

  static void forward(const auto& parameters, auto& kept, const auto& context) {
    context.stage([&] {
      const auto rows = context.template count<shape.seq_len>();
      if constexpr (requires { kept.scores.query; }) {
        copy_n(kept.query.data(), rows * kWidth, kept.scores.query.data());
      }
      multiply(parameters, rows, kept.query.data());
    });
  }
  /// Adds the gradient of t, from dQ' in place of Q'. Overwrites it with dQ.
  static void backward(const auto& parameters, auto& tape, auto& gradients, const auto& context) {
    const auto input = [&] {
      context.stage(
          [&] { multiply(parameters, context.template count<shape.seq_len>(), tape.query.data()); });
    };
    const auto add = [&]([[maybe_unused]] Scalar* sums) {
      if constexpr (requires { tape.scores.query; }) {
        Scalar total(0);  // of the heads with one factor: a gradient gets one addition
        for (int head = 0; head < shape.num_heads; ++head) {
          const Scalar sum = kernels::sum_of_products<std::remove_cvref_t<decltype(context)>::kSkipsZeros>(
              static_cast<int>(context.template count<shape.seq_len>()),
              std::integral_constant<int, shape.d_k>{}, kWidth, tape.query.data() + head * shape.d_k,
              tape.scores.query.data() + head * shape.d_k);
          total = kernels::multiply_add(factor_of(parameters, head).slope, sum, total);
          if (shape.score_scales == 1 && head + 1 < shape.num_heads) continue;
          Scalar& to = sums[index_of(head)];
          to = kernels::add(to, total);
          total = Scalar(0);
        }
      }
    };
    add_gradient_then_input(gradients.score_scale, context, add, input);
  }

 private:
  // Multiplies the first rows of queries[rows, num_heads·d_k] by their heads' factors.
  static void multiply(const auto& parameters, int rows, Scalar* queries) {
    for (int head = 0; head < shape.num_heads; ++head) {
      const Scalar factor = factor_of(parameters, head).value;
      for (int i = 0; i < rows; ++i) {
        kernels::scale<shape.d_k>(queries + i * kWidth + head * shape.d_k, factor);
      }
    }
  }
  static constexpr int index_of(int head) { return shape.score_scales == 1 ? 0 : head; }
  static ScoreFactor<Scalar> factor_of(const auto& parameters, int head) {
    return score_factor<shape.score_scale>(Scalar(parameters.score_scale.data()[index_of(head)]));
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
