// Training without gradients: backward updates each parameter as soon as its gradient is known.
//
//   attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
//
// A batch of one needs no place to add up gradients. Backward gives each of them to the optimiser, a few rows
// of a tensor at a time, so that RAM holds those rows instead of a gradient for every parameter, and each
// parameter is fetched once for both. The bits are those of a step with gradients.
//
// What needs all gradients before the first update is not to be had: clipping by their norm, and refusing a
// step whose gradients are not finite (its loss is still looked at). It trains Linear and MultiHeadAttention,
// alone or in models with layers that have no parameters: their backward goes through each parameter once,
// and has read it by then. Another layer with parameters is a compile error, unless its kUpdatesInBackward =
// true says that it is such a one.
#pragma once

#include <algorithm>

#include <attune/core/gradients.hpp>
#include <attune/core/weights.hpp>
#include <attune/training/plan.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

// The extents of a tensor, without its storage.
template <class, int kRows, int kCols>
struct Extents {
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
};

inline constexpr int kUpdatedRows = 8;  // at a time: whole register tiles of a product

/// The rows of gradients that exist at one time.
template <class Model>
constexpr int updated_scalars() {
  static_assert(kUpdatesInBackward<Model>,
                "attune::UpdateInBackward: backward of one of the layers reads parameters behind their "
                "gradients; what it trains is Linear and MultiHeadAttention: leave the plan at Streaming");
  int most = 0;
  if constexpr (kUpdatesInBackward<Model>) {
    typename Model::template ParametersOf<Extents> extents{};
    for_each_tensor(
        [&most](const TensorPath&, auto tensor) {
          most = std::max(most, std::min(kUpdatedRows, tensor.rows) * tensor.cols);
        },
        extents);
  }
  return most;
}

// What the updates of one step share.
template <class Optimizer>
struct UpdateContext {
  using Scalar = typename Optimizer::Scalar;
  typename Optimizer::Coefficients coefficients;
  Scalar* rows;  // room for updated_scalars()
  std::ptrdiff_t
      to_moment[Optimizer::kMoments > 0 ? Optimizer::kMoments : 1];  // from a parameter, in scalars
};

// Stands for a tensor's gradient: what is added to it updates the tensor. It is its own view.
template <class Optimizer>
struct Updates {
  template <class Scalar, int kRows, int kCols>
  struct Leaf {
    static constexpr bool kUpdatesAtOnce = true;

    Scalar* parameter;
    const UpdateContext<Optimizer>* context;

    friend const Leaf& view(const Leaf& leaf) { return leaf; }
    template <int kCount>
    [[nodiscard]] Leaf<Scalar, kCount, kCols> rows_at(int first) const {
      return {parameter + first * kCols, context};
    }

    template <class A, class B, class Terms = kernels::AllTerms>
    friend void add_product(const A& a, const B& b, const Leaf& leaf, const Terms& terms = {}) {
      constexpr int kRest = kRows % kUpdatedRows;
      if constexpr (kRows >= kUpdatedRows) {
        for (int row = 0; row < kRows - kRest; row += kUpdatedRows) {
          leaf.template update_rows<kUpdatedRows>(a, b, row, terms);
        }
      }
      if constexpr (kRest > 0) leaf.template update_rows<kRest>(a, b, kRows - kRest, terms);
    }
    template <class Gradient>
    friend void add_column_sums(const Gradient& dy, const Leaf& leaf) {
      static_assert(kRows == 1);
      const MatrixView<Scalar, 1, kCols> sums(leaf.context->rows);
      for (int j = 0; j < kCols; ++j) sums.data[j] = 0;
      add_column_sums(dy, sums);
      leaf.update(0, kCols);
    }

   private:
    template <int kCount, class A, class B, class Terms>
    void update_rows(const A& a, const B& b, int row, const Terms& terms) const {
      const MatrixView<Scalar, kCount, kCols> gradient(context->rows);
      terms.product(a.template rows_at<kCount>(row), b, gradient);
      update(row * kCols, kCount * kCols);
    }
    // `size` parameters from `first` on, whose gradients are in context->rows.
    void update(int first, int size) const {
      [&]<std::size_t... kMoment>(std::index_sequence<kMoment...>) {
        Optimizer::update(context->coefficients, size, parameter + first, context->rows,
                          (parameter + first + context->to_moment[kMoment])...);
      }
      (std::make_index_sequence<Optimizer::kMoments>{});
    }
  };
};

}  // namespace detail

/// What takes the place of the gradients in a backward by hand, for one step:
///
///   ParameterUpdates<Layer, AdamW> updates(parameters, moments, options, rows);
///   Layer::backward(parameters, x, tape, dy, dx, updates.leaves, scratch);
///
/// `options` are those that Optimizer::check() has passed. `rows` is overwritten.
template <class Model, class Optimizer>
class ParameterUpdates {
 public:
  using Parameters = typename Model::Parameters;
  using Rows = Tensor<typename Model::Scalar, 1, detail::updated_scalars<Model>()>;

  ParameterUpdates(Parameters& parameters, typename Optimizer::template Moments<Parameters>& moments,
                   const typename Optimizer::Options& options, Rows& rows)
      : context_{Optimizer::advance(moments, options), rows.data(), {}} {
    Optimizer::for_each_with_moments(
        [this](const TensorPath&, auto& leaf, auto& parameter, auto&... moment) {
          leaf = {parameter.data(), &context_};
          int k = 0;
          ((context_.to_moment[k++] = moment.data() - parameter.data()), ...);
        },
        moments, leaves, parameters);
  }
  ParameterUpdates(const ParameterUpdates&) = delete;
  ParameterUpdates& operator=(const ParameterUpdates&) = delete;

  typename Model::template ParametersOf<detail::Updates<Optimizer>::template Leaf> leaves;

 private:
  detail::UpdateContext<Optimizer> context_;
};

/// The plan of a Trainer with a batch of one: no gradients in RAM.
struct UpdateInBackward {
  template <class Model>
  using Gradients =
      Tensor<typename Model::Scalar, 1, detail::updated_scalars<Model>()>;  // a few rows of them
  template <class Model>
  using Workspace = Streaming::Workspace<Model>;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
