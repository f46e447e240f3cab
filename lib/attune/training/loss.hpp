// Losses: a number to minimise, and its gradient.
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/kernels/reduce.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

enum class Reduction {
  kMean,     // (1/n) Σ (y − t)²,  gradient (2/n)(y − t)      PyTorch's nn.MSELoss
  kSum,      // Σ (y − t)²,        gradient 2(y − t)
  kHalfSum,  // ½ Σ (y − t)²,      gradient y − t
};

template <Reduction reduction>
struct SquaredError {
  /// A mean over one sequence is a mean over a batch of equal sequences when each counts 1/batch.
  static constexpr bool kMeanOverBatch = reduction == Reduction::kMean;

  /// The loss of y[rows, cols] against target[rows, cols], times `weight`; writes dy = weight · dL/dy.
  /// `dy` may be `y`. Sums run in the library's order (kernels/reduce.hpp).
  template <class Output, class Target, class Gradient>
  static typename Gradient::Scalar forward(const Output& y_matrix, const Target& target_matrix,
                                           Gradient&& dy_matrix,
                                           kernels::Real<typename Gradient::Scalar> weight = 1) {
    using Scalar = typename Gradient::Scalar;
    using Real = kernels::Real<Scalar>;
    const auto y = view(y_matrix);
    const auto target = view(target_matrix);
    const auto dy = view(dy_matrix);
    static_assert(y.rows == target.rows && y.cols == target.cols && y.rows == dy.rows && y.cols == dy.cols,
                  "attune::SquaredError: output, target and gradient must have one shape");
    constexpr int kSize = y.rows * y.cols;
    constexpr Real kLossFactor = reduction == Reduction::kMean      ? Real(1) / kSize
                                 : reduction == Reduction::kHalfSum ? Real(0.5)
                                                                    : Real(1);
    constexpr Real kGradientFactor = 2 * kLossFactor;
    return Scalar(kLossFactor * weight) *
           squared_error<kSize, Scalar>(y.data, target.data, dy.data, kGradientFactor * weight);
  }
  template <class Output, class Target, class Gradient>
  static typename Gradient::Scalar forward(const Output& y, const Target& target, Gradient& dy,
                                           kernels::Real<typename Gradient::Scalar> weight = 1) {
    return forward(y, target, view(dy), weight);
  }

 private:
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

using MeanSquaredError = SquaredError<Reduction::kMean>;
using SumSquaredError = SquaredError<Reduction::kSum>;
using HalfSumSquaredError = SquaredError<Reduction::kHalfSum>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
