// The Huber loss (Huber, "Robust Estimation of a Location Parameter", 1964): squared for errors up to δ,
// linear beyond.
//
//   e = y − t,   c = min(max(e, −δ), δ),   L = Σ c·(e − c/2),   dL/dy = c
//
// L is e²/2 for |e| ≤ δ, and δ·(|e| − δ/2) beyond. It equals PyTorch's nn.HuberLoss; nn.SmoothL1Loss is this
// divided by δ = β.
#pragma once

#include <attune/training/loss.hpp>

namespace ATTUNE_NAMESPACE {

/// The options of a Huber loss.
struct HuberOptions {
  Reduction reduction = Reduction::kMean;  // or kSum
  double delta = 1;                        // largest error that is squared
};

/// Huber's loss: e²/2 for |e| ≤ δ, δ·(|e| − δ/2) beyond, with e = y − target. The mean or the sum over all
/// elements.
template <HuberOptions options = HuberOptions{}>
struct Huber : detail::ElementwiseLoss<Huber<options>, options.reduction> {
  static_assert(
      detail::Holds<(options.reduction == Reduction::kMean || options.reduction == Reduction::kSum)>,
      "attune::Huber: reduction must be kMean or kSum");
  static_assert(detail::Holds<(options.delta >= 1e-30)>, "attune::Huber: delta must be at least 1e-30");

 private:
  friend detail::ElementwiseLoss<Huber, options.reduction>;

  static constexpr double kDelta = options.delta;
  static constexpr int kSlopeFactor = 1;

  // c·(e − c/2).
  template <class P>
  ATTUNE_INLINE static P term(const P& error) {
    using Scalar = kernels::ScalarOf<P>;
    const P clipped = slope(error);
    const P half = kernels::broadcast<P>(Scalar(kernels::Real<Scalar>(0.5)));
    return kernels::multiply(clipped, kernels::subtract_product(error, clipped, half));
  }
  // c of e.
  template <class P>
  ATTUNE_INLINE static P slope(const P& error) {
    using Scalar = kernels::ScalarOf<P>;
    constexpr auto kBound = static_cast<kernels::Real<Scalar>>(kDelta);
    const P delta = kernels::broadcast<P>(Scalar(kBound));
    const P minus_delta = kernels::broadcast<P>(Scalar(-kBound));
    const P below = kernels::select_less(error, minus_delta, minus_delta, error);
    return kernels::select_less(delta, below, delta, below);
  }
};

}  // namespace ATTUNE_NAMESPACE
