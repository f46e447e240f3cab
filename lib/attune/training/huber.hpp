// The Huber loss (Huber, "Robust Estimation of a Location Parameter", 1964): squared up to an error of δ,
// linear beyond.
//
//   e = y − t,   c = min(max(e, −δ), δ),   L = Σ c·(e − c/2),   dL/dy = c
//
// That is e²/2 for |e| ≤ δ and δ·(|e| − δ/2) beyond. PyTorch's nn.HuberLoss; its SmoothL1Loss is this divided
// by δ = β.
#pragma once

#include <attune/training/loss.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Where a Huber loss turns.
struct HuberOptions {
  Reduction reduction = Reduction::kMean;  // or kSum
  double delta = 1;                        // errors up to it are squared
};

/// Huber's loss: e²/2 for |e| ≤ δ, δ·(|e| − δ/2) beyond, e = y − target; the mean or the sum of all elements.
template <HuberOptions options = HuberOptions{}>
struct Huber {
  static_assert(options.reduction == Reduction::kMean || options.reduction == Reduction::kSum,
                "attune::Huber: reduction must be kMean or kSum");
  static_assert(options.delta >= 1e-30,
                "attune::Huber: delta must be positive, and 1e-30 at least: below it there is no gradient");

  /// A mean over a batch of sequences of one size is the mean of their means.
  static constexpr bool kMeanOverBatch = options.reduction == Reduction::kMean;
  static constexpr bool kCountsSequences = true;

  /// The loss of y[rows, cols] against target[rows, cols], times `weight`; writes dy = weight · dL/dy. `dy`
  /// may be `y`. Sums run in the library's order (kernels/ops/reduce.hpp).
  template <class Output, class Target, class Gradient>
  static auto forward(const Output& y_matrix, const Target& target_matrix, Gradient&& dy_matrix,
                      kernels::Real<typename std::remove_cvref_t<Gradient>::Scalar> weight = 1) ->
      typename std::remove_cvref_t<Gradient>::Scalar {
    using Scalar = typename std::remove_cvref_t<Gradient>::Scalar;
    using Real = kernels::Real<Scalar>;
    const auto y = dense_view(y_matrix);
    const auto target = dense_view(target_matrix);
    const auto dy = dense_view(dy_matrix);
    static_assert(y.rows == target.rows && y.cols == target.cols && y.rows == dy.rows && y.cols == dy.cols,
                  "attune::Huber: output, target and gradient must have one shape");
    constexpr int kSize = y.rows * y.cols;
    constexpr Real kFactor = options.reduction == Reduction::kMean ? Real(1) / kSize : Real(1);
    const Scalar factor(kFactor * weight);
    return kernels::multiply(huber<kSize>(y.data, target.data, dy.data, factor), factor);
  }

  /// For trainers: the mean over a sequence counts 1.
  template <class Output, class Target, class Gradient>
  static LossSum<typename Gradient::Scalar> sum(const Output& y, const Target& target, const Gradient& dy) {
    return {forward(y, target, dy)};
  }

 private:
  static constexpr double kDelta = options.delta;

  // c of e.
  template <class P>
  ATTUNE_INLINE static P clipped(const P& error) {
    using Scalar = kernels::ScalarOf<P>;
    constexpr auto kBound = static_cast<kernels::Real<Scalar>>(kDelta);
    const P delta = kernels::broadcast<P>(Scalar(kBound));
    const P minus_delta = kernels::broadcast<P>(Scalar(-kBound));
    const P below = kernels::select_less(error, minus_delta, minus_delta, error);
    return kernels::select_less(delta, below, delta, below);
  }

  template <int kSize, class Scalar>
  [[gnu::noinline]] static Scalar huber(const Scalar* y, const Scalar* target, Scalar* dy, Scalar factor) {
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      kernels::store(dy + i, kernels::subtract(kernels::load<P>(y + i), kernels::load<P>(target + i)));
    });
    const Scalar total = kernels::sum<Scalar, kSize>([&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      const P error = kernels::load<P>(dy + i);
      const P slope = clipped(error);
      const P half = kernels::broadcast<P>(Scalar(kernels::Real<Scalar>(0.5)));
      return kernels::multiply(slope, kernels::subtract_product(error, slope, half));
    });
    kernels::for_each_packet<Scalar>(kSize, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      kernels::store(dy + i,
                     kernels::multiply(clipped(kernels::load<P>(dy + i)), kernels::broadcast<P>(factor)));
    });
    return total;
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
