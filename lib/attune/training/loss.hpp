// The interface of a loss, and squared errors.
//
// A loss is a number to minimize, and its gradient. It is a type, often without state:
//
//   struct MyLoss {
//     static constexpr bool kMeanOverBatch = true;
//     // Returns L, its normalizer for a mean, and whether the targets are valid. Writes dy = dL/dy; `dy` may
//     // be `y`.
//     LossSum<Scalar> sum(ConstView<Output> y, Target target, View<Output> dy) const;
//   };
//
// A trainer adds up sums, normalizers and gradients over a batch. With kMeanOverBatch it divides once, by the
// sum of the normalizers: a mean over all counted targets of the batch, however they are spread over the
// sequences. Otherwise the batch's loss is the sum. `Target` is a ConstView<Output>. With
//
//   static constexpr bool kClassTargets = true;
//
// targets are classes, one per row: std::array<int, rows> for each sequence. If every normalizer is 1, set
// kCountsSequences = true; normalizers are then not stored.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/training/batch.hpp>

namespace ATTUNE_NAMESPACE {

/// The loss of one sequence before any division.
template <class Scalar>
struct LossSum {
  Scalar sum;                            // over all targets
  kernels::Real<Scalar> normalizer = 1;  // number or weight of the targets; not negative
  Status status = Status::kOk;           // on an error nothing is written
};

/// The loss of one sequence; NaN if `status` is not kOk.
template <class Scalar>
struct [[nodiscard]] LossResult {
  Scalar loss;
  Status status;
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
  /// Whether the status is `other`.
  [[nodiscard]] friend constexpr bool operator==(const LossResult& result, Status other) {
    return result.status == other;
  }
};

/// How squared errors are combined.
enum class Reduction {
  kMean = 0,     // (1/n) Σ (y − t)²,  gradient (2/n)(y − t)      PyTorch's nn.MSELoss
  kSum = 1,      // Σ (y − t)²,        gradient 2(y − t)
  kHalfSum = 2,  // ½ Σ (y − t)²,      gradient y − t
};

namespace detail {

template <class L, class Output>
concept SumsLoss = requires(const L& loss, typename TargetsOf<L, Output, 1>::One target, ConstView<Output> y,
                            View<Output> dy) {
  { L::kMeanOverBatch } -> std::convertible_to<bool>;
  loss.sum(y, target, dy);
};

}  // namespace detail

/// A loss for models with this output: see the top of this file.
template <class L, class Output>
concept IsLoss = detail::SumsLoss<L, Output> &&
    requires(const L& loss, typename detail::TargetsOf<L, Output, 1>::One target, ConstView<Output> y,
             View<Output> dy) {
  { loss.sum(y, target, dy) } -> std::same_as<LossSum<typename Output::Scalar>>;
};

namespace detail {

/// Whether L is a loss. If not, one error names the missing member.
template <class L, class Output>
constexpr bool check_loss() {
  constexpr bool kOptimizer = requires { typename L::Coefficients; };
  constexpr bool kSaysMean = !kOptimizer && requires { L::kMeanOverBatch; };
  static_assert(
      Holds<!kOptimizer>,
      "attune::Loss: this is an optimizer; the loss comes before it: Trainer<Model, Loss, Optimizer>");
  static_assert(Holds<(kSaysMean || kOptimizer)>,
                "attune::Loss: the type has no kMeanOverBatch (whether a batch's loss is a mean); "
                "training/loss.hpp shows a loss's members");
  static_assert(Holds<(SumsLoss<L, Output> || !kSaysMean)>,
                "attune::Loss: there is no sum(y, target, dy) for a ConstView<Output> y, a View<Output> dy "
                "and a target of the same shape, or of classes with kClassTargets");
  static_assert(Holds<(IsLoss<L, Output> || !kSaysMean || !SumsLoss<L, Output>)>,
                "attune::Loss: sum(y, target, dy) must return a LossSum of the model's scalar");
  return IsLoss<L, Output>;
}
template <class L, class Output>
concept CheckedLoss = check_loss<L, Output>();

/// The loss of sequences with this sum.
template <class Loss, class Scalar>
Scalar loss_of(const LossSum<Scalar>& all) {
  return Loss::kMeanOverBatch && all.normalizer > 0 ? all.sum / all.normalizer : all.sum;
}

/// The added losses of a batch's sequences. Normalizers take no memory if they are always 1 or never used.
template <class Loss, class Scalar>
struct BatchSums {
  static constexpr bool kCounts = !Loss::kMeanOverBatch || requires { requires Loss::kCountsSequences; };

  Scalar loss;
  [[no_unique_address]] std::conditional_t<kCounts, Dropped, Scalar> normalizer;
  int sequences;

  void clear() {
    loss = 0;
    normalizer = 0;
    sequences = 0;
  }
  void add(const LossSum<Scalar>& sequence) {
    loss += sequence.sum;
    normalizer += sequence.normalizer;
    ++sequences;
  }
  [[nodiscard]] LossSum<Scalar> total() const {
    return {loss, first_if<kCounts>(static_cast<Scalar>(sequences), normalizer)};
  }
};

/// The common part of losses of whole sequences. Sequences have the same size, so the mean over a batch is
/// the mean of their means. Loss::forward(y, target, dy) returns the loss, and writes dy = dL/dy.
template <class Loss, Reduction reduction = Reduction::kMean>
struct LossOfSequences {
  static constexpr bool kMeanOverBatch = reduction == Reduction::kMean;
  static constexpr bool kCountsSequences = true;

  /// For trainers: the normalizer of a sequence's mean is 1.
  template <class Output, class Target, class Gradient, class Own = Loss>
  static auto sum(const Output& y, const Target& target, const Gradient& dy)
      -> LossSum<decltype(Own::forward(y, target, dy))> {
    return {Own::forward(y, target, dy)};
  }
};

/// The common part of losses that are sums or means over elements. Of an error e = y − target, Loss::term(e)
/// is the loss, and Loss::slope(e) times kSlopeFactor its derivative.
template <class Loss, Reduction reduction>
struct ElementwiseLoss : LossOfSequences<Loss, reduction> {
  /// Returns the loss of y[rows, cols] and target[rows, cols], times `weight`. Writes dy = weight · dL/dy.
  /// `dy` may be `y`. Sums run in the library's order (kernels/ops/reduce.hpp).
  template <class Output, class Target, class Gradient>
  static auto forward(const Output& y_matrix, const Target& target_matrix, Gradient&& dy_matrix,
                      kernels::Real<typename std::remove_cvref_t<Gradient>::Scalar> weight = 1) ->
      typename std::remove_cvref_t<Gradient>::Scalar {
    const auto y = dense_view(y_matrix);
    const auto target = dense_view(target_matrix);
    const auto dy = dense_view(dy_matrix);
    static_assert(
        Holds<(y.rows == target.rows && y.cols == target.cols && y.rows == dy.rows && y.cols == dy.cols)>,
        "attune: output, target and gradient of a loss must have one shape");
    using Scalar = typename decltype(dy)::Scalar;
    using Real = kernels::Real<Scalar>;
    constexpr int kSize = y.rows * y.cols;
    constexpr Real kFactor = reduction == Reduction::kMean      ? Real(1) / kSize
                             : reduction == Reduction::kHalfSum ? Real(0.5)
                                                                : Real(1);
    constexpr Real kSlopeFactor = Loss::kSlopeFactor * kFactor;
    const Scalar total = sum_of_terms<kSize, Scalar>(y.data, target.data, dy.data, kSlopeFactor * weight);
    return kernels::multiply(Scalar(kFactor * weight), total);
  }

 private:
  // Writes dy = slope_factor · slope(y − target).
  template <int kSize, class Scalar>
  [[gnu::noinline]] static Scalar sum_of_terms(const Scalar* y, const Scalar* target, Scalar* dy,
                                               kernels::Real<Scalar> slope_factor) {
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      kernels::store(dy + i, kernels::subtract(kernels::load<P>(y + i), kernels::load<P>(target + i)));
    });
    const Scalar total = kernels::sum<Scalar, kSize>(
        [&]<class P>(int i) ATTUNE_INLINE_LAMBDA { return Loss::term(kernels::load<P>(dy + i)); });
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      const P slope = Loss::slope(kernels::load<P>(dy + i));
      kernels::store(dy + i, kernels::multiply(slope, kernels::broadcast<P>(slope_factor)));
    });
    return total;
  }
};

}  // namespace detail

/// The squared error of y[rows, cols] and a target of the same shape: mean, sum or half sum.
template <Reduction reduction>
struct SquaredError : detail::ElementwiseLoss<SquaredError<reduction>, reduction> {
 private:
  friend detail::ElementwiseLoss<SquaredError, reduction>;

  static constexpr int kSlopeFactor = 2;
  template <class P>
  ATTUNE_INLINE static P term(const P& error) {
    return kernels::multiply(error, error);
  }
  template <class P>
  ATTUNE_INLINE static P slope(const P& error) {
    return error;
  }
};

/// The mean of squares, as PyTorch's nn.MSELoss.
using MeanSquaredError = SquaredError<Reduction::kMean>;
/// The sum of squares.
using SumSquaredError = SquaredError<Reduction::kSum>;
/// Half the sum of squares, with the gradient y − t.
using HalfSumSquaredError = SquaredError<Reduction::kHalfSum>;

}  // namespace ATTUNE_NAMESPACE
