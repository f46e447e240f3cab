// Rows of logits: ln Σ e^x, and log-softmax forward and backward.
#pragma once

#include <attune/kernels/ops/softmax.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// ln Σ_j e^(x_j) of a row in two parts, largest + log_sum, so that x − largest loses no precision.
template <class Scalar>
struct LogSumExp {
  Scalar largest;
  Scalar log_sum;  // ln Σ e^(x − largest), 0 … ln kCols
};

/// The logarithm of a sum of exponentials, 1 … kCols. Returns NaN for NaN, which logarithm() does not handle.
template <class Scalar>
ATTUNE_INLINE Scalar logarithm_of_sum(Scalar sum) {
  return add(logarithm(sum), subtract(sum, sum));
}

/// NaN if the row has a NaN or +∞, or only −∞.
template <int kCols, class Scalar>
ATTUNE_INLINE LogSumExp<Scalar> log_sum_exp(const Scalar* x) {
  const Scalar largest = largest_of<kCols>(x);
  const Scalar total = sum<Scalar, kCols>([&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    return exponential(subtract(load<P>(x + j), broadcast<P>(largest)));
  });
  return {largest, logarithm_of_sum(total)};
}

/// y_j = x_j − ln Σ e^x. `y` may be `x`.
template <int kCols, class Scalar>
[[gnu::noinline]] void log_softmax_row(const Scalar* x, Scalar* y) {
  const LogSumExp<Scalar> row = log_sum_exp<kCols>(x);
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P centered = subtract(load<P>(x + j), broadcast<P>(row.largest));
    store(y + j, subtract(centered, broadcast<P>(row.log_sum)));
  });
}

/// dx = dy − e^y · Σ dy, from forward's row y. `dx` may be `dy` or `y`.
template <int kCols, class Scalar>
[[gnu::noinline]] void log_softmax_row_backward(const Scalar* y, const Scalar* dy, Scalar* dx) {
  const Scalar total = sum_of<kCols>(dy);
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P weight = exponential(load<P>(y + j));
    store(dx + j, subtract_product(load<P>(dy + j), weight, broadcast<P>(total)));
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
