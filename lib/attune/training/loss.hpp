// What a loss is, and the squared errors.
//
// A loss is a number to minimize, and its gradient. It is a type, often without state, that says
//
//   struct MyLoss {
//     static constexpr bool kMeanOverBatch = true;
//     // L, what to divide it by in a mean, and whether the targets can be; dy = dL/dy. `dy` may be `y`.
//     LossSum<Scalar> sum(ConstView<Output> y, Target target, View<Output> dy) const;
//   };
//
// A trainer adds up sums, normalizers and gradients over a batch. With kMeanOverBatch it divides once, by the
// sum of the normalizers: a mean over all that counts in the batch, however it is spread over the sequences.
// Without, the batch's loss is the sum. `Target` is a ConstView<Output>, or with
//
//   static constexpr bool kClassTargets = true;
//
// classes, one a row: std::array<int, rows> of each sequence. A loss whose every normalizer is 1 may say
// kCountsSequences = true: then none is kept.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/training/batch.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The loss of one sequence before any division.
template <class Scalar>
struct LossSum {
  Scalar sum;                            // of all targets
  kernels::Real<Scalar> normalizer = 1;  // the targets' number or weight; not negative
  Status status = Status::kOk;           // where it is not kOk nothing is written
};

/// The loss of one sequence; NaN where `status` is not kOk.
template <class Scalar>
struct [[nodiscard]] LossResult {
  Scalar loss;
  Status status;
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
  /// Whether the status is this one.
  [[nodiscard]] friend constexpr bool operator==(const LossResult& result, Status other) {
    return result.status == other;
  }
};

/// A loss for models with such an output: see the top of this file.
template <class L, class Output>
concept IsLoss = requires(const L& loss, typename detail::TargetsOf<L, Output, 1>::One target,
                          ConstView<Output> y, View<Output> dy) {
  { L::kMeanOverBatch } -> std::convertible_to<bool>;
  { loss.sum(y, target, dy) } -> std::same_as<LossSum<typename Output::Scalar>>;
};

namespace detail {

/// Whether L is a loss; where it is none, one error says what is missing.
template <class L, class Output>
constexpr bool check_loss() {
  using Target = typename TargetsOf<L, Output, 1>::One;
  if constexpr (!requires { L::kMeanOverBatch; }) {
    static_assert(sizeof(L) == 0,
                  "attune::Loss: the type does not say kMeanOverBatch, whether a batch's loss is a mean; "
                  "training/loss.hpp shows what a loss has");
  } else if constexpr (!requires(const L& loss, ConstView<Output> y, Target target, View<Output> dy) {
                         loss.sum(y, target, dy);
                       }) {
    static_assert(sizeof(L) == 0,
                  "attune::Loss: there is no sum(y, target, dy) for a ConstView<Output> y, a View<Output> dy "
                  "and a target of the same shape, or of classes where it says kClassTargets");
  } else if constexpr (!IsLoss<L, Output>) {
    static_assert(sizeof(L) == 0,
                  "attune::Loss: sum(y, target, dy) answers no LossSum of the model's scalar");
  }
  return IsLoss<L, Output>;
}
template <class L, class Output>
concept CheckedLoss = check_loss<L, Output>();

}  // namespace detail

namespace detail {

/// Losses of the sequences of a batch, added up. Normalizers that are known to be 1, or that nothing is
/// divided by, take no memory.
template <class Loss, class Scalar>
struct BatchSums {
  static constexpr bool kCounts = !Loss::kMeanOverBatch || requires { requires Loss::kCountsSequences; };
  struct Counted {};

  Scalar loss;
  [[no_unique_address]] std::conditional_t<kCounts, Counted, Scalar> normalizer;
  int sequences;

  void clear() {
    loss = 0;
    if constexpr (!kCounts) normalizer = 0;
    sequences = 0;
  }
  void add(const LossSum<Scalar>& sequence) {
    loss += sequence.sum;
    if constexpr (!kCounts) normalizer += sequence.normalizer;
    ++sequences;
  }
  [[nodiscard]] LossSum<Scalar> total() const {
    if constexpr (kCounts) {
      return {loss, static_cast<Scalar>(sequences)};
    } else {
      return {loss, normalizer};
    }
  }
};

}  // namespace detail

/// What becomes of the squares.
enum class Reduction {
  kMean,     // (1/n) Σ (y − t)²,  gradient (2/n)(y − t)      PyTorch's nn.MSELoss
  kSum,      // Σ (y − t)²,        gradient 2(y − t)
  kHalfSum,  // ½ Σ (y − t)²,      gradient y − t
};

namespace detail {

/// What losses have in common that are sums or means over elements: Loss::of_elements<size>(y, target, dy,
/// weight) is the loss times weight, and writes dy = weight · dL/dy.
template <class Loss, Reduction reduction>
struct ElementwiseLoss {
  /// A mean over a batch of sequences of one size is the mean of their means.
  static constexpr bool kMeanOverBatch = reduction == Reduction::kMean;
  static constexpr bool kCountsSequences = true;

  /// The loss of y[rows, cols] against target[rows, cols], times `weight`; writes dy = weight · dL/dy. `dy`
  /// may be `y`. Sums run in the library's order (kernels/ops/reduce.hpp).
  template <class Output, class Target, class Gradient>
  static auto forward(const Output& y_matrix, const Target& target_matrix, Gradient&& dy_matrix,
                      kernels::Real<typename std::remove_cvref_t<Gradient>::Scalar> weight = 1) ->
      typename std::remove_cvref_t<Gradient>::Scalar {
    const auto y = dense_view(y_matrix);
    const auto target = dense_view(target_matrix);
    const auto dy = dense_view(dy_matrix);
    static_assert(y.rows == target.rows && y.cols == target.cols && y.rows == dy.rows && y.cols == dy.cols,
                  "attune: output, target and gradient of a loss must have one shape");
    return Loss::template of_elements<y.rows * y.cols>(y.data, target.data, dy.data, weight);
  }

  /// For trainers: the mean over a sequence counts 1.
  template <class Output, class Target, class Gradient>
  static LossSum<typename Gradient::Scalar> sum(const Output& y, const Target& target, const Gradient& dy) {
    return {forward(y, target, dy)};
  }
};

}  // namespace detail

/// The squared error of y[rows, cols] against a target of the same shape: mean, sum or half sum.
template <Reduction reduction>
struct SquaredError : detail::ElementwiseLoss<SquaredError<reduction>, reduction> {
 private:
  friend detail::ElementwiseLoss<SquaredError, reduction>;

  template <int kSize, class Scalar>
  static Scalar of_elements(const Scalar* y, const Scalar* target, Scalar* dy, kernels::Real<Scalar> weight) {
    using Real = kernels::Real<Scalar>;
    constexpr Real kLossFactor = reduction == Reduction::kMean      ? Real(1) / kSize
                                 : reduction == Reduction::kHalfSum ? Real(0.5)
                                                                    : Real(1);
    constexpr Real kGradientFactor = 2 * kLossFactor;
    return Scalar(kLossFactor * weight) *
           squared_error<kSize, Scalar>(y, target, dy, kGradientFactor * weight);
  }
  template <int kSize, class Scalar>
  [[gnu::noinline]] static Scalar squared_error(const Scalar* y, const Scalar* target, Scalar* dy,
                                                kernels::Real<Scalar> factor) {
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      kernels::store(dy + i, kernels::subtract(kernels::load<P>(y + i), kernels::load<P>(target + i)));
    });
    const Scalar total = kernels::sum<Scalar, kSize>([&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      const P error = kernels::load<P>(dy + i);
      return kernels::multiply(error, error);
    });
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      kernels::store(dy + i, kernels::multiply(kernels::load<P>(dy + i), kernels::broadcast<P>(factor)));
    });
    return total;
  }
};

/// The mean of squares, as PyTorch's nn.MSELoss.
using MeanSquaredError = SquaredError<Reduction::kMean>;
/// The sum of squares.
using SumSquaredError = SquaredError<Reduction::kSum>;
/// Half the sum of squares: its gradient is y − t.
using HalfSumSquaredError = SquaredError<Reduction::kHalfSum>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
