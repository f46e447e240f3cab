// Normalization of rows to mean 0 and variance 1, or to a root mean square of 1, forward and backward.
#pragma once

#include <limits>

#include <attune/kernels/cortex_m/normalize.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// The statistics that normalize a row.
enum class Normalization {
  kMeanAndVariance = 0,   // x̂ = (x − mean) / √(variance + ε)
  kRootMeanSquare = 1,    // x̂ = x / √(mean square + ε)
  kMeanAndDeviation = 2,  // x̂ = (x − mean) / (s + ε), of the unbiased deviation s
};
/// Whether a row's mean is subtracted.
constexpr bool centers(Normalization kind) { return kind != Normalization::kRootMeanSquare; }

/// The statistics of one row. The mean is stored as two numbers, first + offset, so that tokens with a large
/// common offset lose no precision: x − first is small and nearly always exact. Both are zero for
/// kRootMeanSquare.
template <class Scalar>
struct RowStatistics {
  Scalar first;    // the first element
  Scalar offset;   // mean − first
  Scalar inverse;  // 1/√(… + ε) or 1/(s + ε); NaN where the sum of squares overflows
};

/// x̂ of one element or of a packet.
template <Normalization kind, class P, class Scalar>
ATTUNE_INLINE P normalized(const P& x, const RowStatistics<Scalar>& row) {
  const P centered =
      centers(kind) ? subtract(subtract(x, broadcast<P>(row.first)), broadcast<P>(row.offset)) : x;
  return multiply(centered, broadcast<P>(row.inverse));
}

namespace detail {

// Σ (x − first), and Σ x̂² before the row is scaled.
template <class Scalar, class Width>
ATTUNE_INLINE Scalar differences(Width width, const Scalar* x, Scalar first) {
  return sum<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    return subtract(load<P>(x + j), broadcast<P>(first));
  });
}
template <Normalization kind, class Scalar, class Width>
ATTUNE_INLINE Scalar squares(Width width, const Scalar* x, const RowStatistics<Scalar>& row) {
  return sum<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P value = normalized<kind>(load<P>(x + j), row);  // inverse is still 1
    return multiply(value, value);
  });
}

// dx̂ = dy ∘ weight of one element or of a packet.
template <bool kWeight, class P, class Scalar>
ATTUNE_INLINE P weighted(int j, const Scalar* dy, [[maybe_unused]] const Scalar* weight) {
  if constexpr (kWeight) return multiply(load<P>(dy + j), load<P>(weight + j));
  return load<P>(dy + j);
}
// Σ dx̂, and Σ dx̂ ∘ x̂.
template <bool kWeight, class Scalar, class Width>
ATTUNE_INLINE Scalar gradient_sum(Width width, const Scalar* dy, const Scalar* weight) {
  return sum<Scalar>(
      width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA { return weighted<kWeight, P>(j, dy, weight); });
}
template <Normalization kind, bool kWeight, class Scalar, class Width>
ATTUNE_INLINE Scalar gradient_dot(Width width, const Scalar* x, const RowStatistics<Scalar>& row,
                                  const Scalar* dy, const Scalar* weight) {
  return sum<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    return multiply(weighted<kWeight, P>(j, dy, weight), normalized<kind>(load<P>(x + j), row));
  });
}

// The first elements of a row, forward and backward, in a target's own loop. Returns their number.
template <Normalization kind, bool kWeight, bool kBias, class Scalar, class Width>
ATTUNE_INLINE int normalize_first(Width, const Scalar*, const RowStatistics<Scalar>&, const Scalar*,
                                  const Scalar*, Scalar*) {
  return 0;
}
template <Normalization kind, bool kWeight, class Scalar, class Width>
ATTUNE_INLINE int normalize_first_backward(Width, const Scalar*, const RowStatistics<Scalar>&, const Scalar*,
                                           const Scalar*, Scalar, Scalar, Scalar*) {
  return 0;
}

#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE  // differences() is in cortex_m/normalize.hpp

template <Normalization kind>
ATTUNE_INLINE float squares(int width, const float* x, const RowStatistics<float>& row) {
  return centers(kind) ? sum_of_squared_differences(width, x, row.first, row.offset)
                       : sum_of_row_squares(width, x);
}
template <bool kWeight>
requires kWeight ATTUNE_INLINE float gradient_sum(int width, const float* dy, const float* weight) {
  return sum_of_gradients(width, dy, weight);
}
template <Normalization kind, bool kWeight>
requires kWeight ATTUNE_INLINE float gradient_dot(int width, const float* x, const RowStatistics<float>& row,
                                                  const float* dy, const float* weight) {
  return dot_with_gradients<centers(kind)>(width, x, row.first, row.offset, row.inverse, weight, dy);
}
template <Normalization kind, bool kWeight, bool kBias>
ATTUNE_INLINE int normalize_first(int width, const float* x, const RowStatistics<float>& row,
                                  const float* weight, const float* bias, float* y) {
  const int fours = width & -4;
  if (fours > 0) {
    normalize_fours<centers(kind), kWeight, kBias>(width, x, row.first, row.offset, row.inverse, weight, bias,
                                                   y);
  }
  return fours;
}
template <Normalization kind, bool kWeight>
requires kWeight ATTUNE_INLINE int normalize_first_backward(int width, const float* x,
                                                            const RowStatistics<float>& row,
                                                            const float* weight, const float* dy,
                                                            float mean_gradient, float projection,
                                                            float* dx) {
  const int fours = width & -4;
  if (fours > 0) {
    normalize_fours_backward<centers(kind)>(width, x, row.first, row.offset, row.inverse, weight, dy,
                                            mean_gradient, projection, dx);
  }
  return fours;
}

#endif

}  // namespace detail

/// 1/deviation; NaN where a sum of squares overflows: zeros would look like an answer.
template <class Scalar>
ATTUNE_INLINE Scalar inverse_of_deviation(const Scalar& deviation) {
  const Scalar one(1), zero(0), inverse = divide(one, deviation);
  return select_less(zero, inverse, inverse, Scalar(std::numeric_limits<Real<Scalar>>::quiet_NaN()));
}

/// The statistics of a row. The variance is the biased one, from the differences to the mean; s has the
/// unbiased one. Here and below, row lengths and numbers of rows come from size_for_rows() (ops/reduce.hpp).
template <Normalization kind, class Scalar, class Width>
[[gnu::noinline]] RowStatistics<Scalar> row_statistics(Width width, const Scalar* x, Scalar epsilon) {
  const auto count = Scalar(static_cast<Real<Scalar>>(width));
  RowStatistics<Scalar> row{Scalar(0), Scalar(0), Scalar(1)};
  if constexpr (centers(kind)) {
    row.first = x[0];
    row.offset = divide(detail::differences(width, x, row.first), count);
  }
  const Scalar squares = detail::squares<kind>(width, x, row);
  row.inverse =
      inverse_of_deviation(kind == Normalization::kMeanAndDeviation
                               ? add(square_root(divide(squares, subtract(count, Scalar(1)))), epsilon)
                               : square_root(add(divide(squares, count), epsilon)));
  return row;
}

/// y = x̂ ∘ weight + bias of one row. An absent weight (nullptr) is 1, an absent bias 0. `y` may be `x`.
template <Normalization kind, bool kWeight, bool kBias, class Scalar, class Width>
[[gnu::noinline]] void normalize_row(Width width, const Scalar* x, RowStatistics<Scalar> row,
                                     const Scalar* weight, const Scalar* bias, Scalar* y) {
  const int first = detail::normalize_first<kind, kWeight, kBias>(width, x, row, weight, bias, y);
  const auto element = [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P value = normalized<kind>(load<P>(x + j), row);
    if constexpr (kBias) {
      value = multiply_add(value, load<P>(weight + j), load<P>(bias + j));
    } else if constexpr (kWeight) {
      value = multiply(value, load<P>(weight + j));
    }
    store(y + j, value);
  };
  for_each_packet<Scalar>(width, element, first);
}

/// d_weight += Σ_rows dy ∘ x̂ and, with a bias, d_bias += Σ_rows dy, over `rows` rows in rising order. Each
/// row has its own `offset` and `inverse`; `offset` is unused for kRootMeanSquare. With kZeroStays, x̂ has no
/// effect where dy is zero.
template <Normalization kind, bool kBias, bool kZeroStays, class Scalar, class Rows, class Width>
[[gnu::noinline]] void normalize_rows_backward_parameters(Rows rows, Width width, const Scalar* x,
                                                          const Scalar* offset, const Scalar* inverse,
                                                          const Scalar* dy, Scalar* d_weight,
                                                          Scalar* d_bias) {
  // Several adjacent packets of columns, which share one load of a row's statistics.
  const auto columns = [&]<class P, int kPackets>(int first) ATTUNE_INLINE_LAMBDA {
    Array<P, kPackets> weight_sum, bias_sum;
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
      weight_sum[p] = bias_sum[p] = broadcast<P>(Scalar(0));
    }
    const Scalar *x_row = x, *dy_row = dy + first;
    for (int i = 0; i < rows; ++i, x_row += width, dy_row += width) {
      RowStatistics<Scalar> row{Scalar(0), Scalar(0), inverse[i]};
      if constexpr (centers(kind)) row.first = x_row[0], row.offset = offset[i];
      ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
        const P gradient = load<P>(dy_row + p * kLanes<P>);
        const P value =
            unless_zero<kZeroStays>(gradient, normalized<kind>(load<P>(x_row + first + p * kLanes<P>), row));
        weight_sum[p] = multiply_add(gradient, value, weight_sum[p]);
        if constexpr (kBias) bias_sum[p] = add(bias_sum[p], gradient);
      }
    }
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
      Scalar* const to = d_weight + first + p * kLanes<P>;
      store(to, add(load<P>(to), weight_sum[p]));
      if constexpr (kBias) {
        Scalar* const bias = d_bias + first + p * kLanes<P>;
        store(bias, add(load<P>(bias), bias_sum[p]));
      }
    }
  };
  using Widest = Packet<Scalar>;
  constexpr int kTwo = 2 * kLanes<Widest>;
  int first = 0;
  for (; first + kTwo <= width; first += kTwo) columns.template operator()<Widest, 2>(first);
  for_each_packet<Scalar>(
      width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA { columns.template operator()<P, 1>(j); }, first);
}

/// The divisor of Σ dx̂ ∘ x̂ in the gradient of a row: its width, or (width − 1)·s/(s + ε) for a deviation.
template <Normalization kind, class Scalar, class Width>
ATTUNE_INLINE Scalar gradient_divisor(Width width, [[maybe_unused]] const RowStatistics<Scalar>& row,
                                      [[maybe_unused]] Scalar epsilon) {
  const auto count = Scalar(static_cast<Real<Scalar>>(width));
  if constexpr (kind == Normalization::kMeanAndDeviation) {
    const Scalar one(1), zero(0), part = subtract_product(one, epsilon, row.inverse);  // s/(s + ε)
    return select_less(zero, part, multiply(subtract(count, one), part), count);       // x̂ is 0 where s is
  }
  return count;
}

/// dx = inverse · (dx̂ − mean(dx̂) − x̂ · Σ(dx̂ ∘ x̂)/divisor) of one row, dx̂ = dy ∘ weight, with the divisor from
/// gradient_divisor(). kRootMeanSquare omits the mean of dx̂. `dx` may be `x` or `dy`.
template <Normalization kind, bool kWeight, class Scalar, class Width>
[[gnu::noinline]] void normalize_row_backward(Width width, const Scalar* x, RowStatistics<Scalar> row,
                                              Scalar divisor, const Scalar* weight, const Scalar* dy,
                                              Scalar* dx) {
  Scalar mean_gradient = 0;
  if constexpr (centers(kind)) {
    const auto count = Scalar(static_cast<Real<Scalar>>(width));
    mean_gradient = divide(detail::gradient_sum<kWeight>(width, dy, weight), count);
  }
  const Scalar dot = detail::gradient_dot<kind, kWeight>(width, x, row, dy, weight);
  const Scalar projection = divide(dot, divisor);
  const int first = detail::normalize_first_backward<kind, kWeight>(width, x, row, weight, dy, mean_gradient,
                                                                    projection, dx);
  const auto element = [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P centered = detail::weighted<kWeight, P>(j, dy, weight);
    if constexpr (centers(kind)) centered = subtract(centered, broadcast<P>(mean_gradient));
    const P result =
        subtract_product(centered, normalized<kind>(load<P>(x + j), row), broadcast<P>(projection));
    store(dx + j, multiply(result, broadcast<P>(row.inverse)));
  };
  for_each_packet<Scalar>(width, element, first);
}

}  // namespace ATTUNE_NAMESPACE::kernels
