// Rows brought to mean 0 and variance 1, or to a root mean square of 1, forward and backward.
#pragma once

#include <attune/kernels/nonzero.hpp>
#include <attune/kernels/reduce.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// Which statistics a row is normalised by.
enum class Normalisation {
  kMeanAndVariance,  // x̂ = (x − mean) / √(variance + ε)
  kRootMeanSquare,   // x̂ = x / √(mean square + ε)
};

/// One row's statistics. Its mean is first + offset, two numbers, so that tokens with a large common offset
/// lose nothing: x − first is small and nearly always exact. Zeros for kRootMeanSquare.
template <class Scalar>
struct RowStatistics {
  Scalar first;    // the first element
  Scalar offset;   // from it to the mean
  Scalar inverse;  // 1/√(… + ε)
};

/// x̂ of one element or of a packet.
template <Normalisation kind, class P, class Scalar>
ATTUNE_INLINE P normalised(const P& x, const RowStatistics<Scalar>& row) {
  if constexpr (kind == Normalisation::kMeanAndVariance) {
    const P centred = subtract(subtract(x, broadcast<P>(row.first)), broadcast<P>(row.offset));
    return multiply(centred, broadcast<P>(row.inverse));
  } else {
    return multiply(x, broadcast<P>(row.inverse));
  }
}

/// The statistics of a row. The variance is the biased one, from the differences to the mean.
template <Normalisation kind, int kCols, class Scalar>
[[gnu::noinline]] RowStatistics<Scalar> row_statistics(const Scalar* x, Scalar epsilon) {
  const auto count = Scalar(Real<Scalar>(kCols));
  RowStatistics<Scalar> row{Scalar(0), Scalar(0), Scalar(1)};
  if constexpr (kind == Normalisation::kMeanAndVariance) {
    row.first = x[0];
    const Scalar differences = sum<Scalar, kCols>([&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      return subtract(load<P>(x + j), broadcast<P>(row.first));
    });
    row.offset = divide(differences, count);
  }
  const Scalar squares = sum<Scalar, kCols>([&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P value = normalised<kind>(load<P>(x + j), row);  // inverse is still 1
    return multiply(value, value);
  });
  row.inverse = divide(Scalar(1), square_root(add(divide(squares, count), epsilon)));
  return row;
}

/// y = x̂ ∘ weight + bias of one row; those that are not there are 1 and 0, and nullptr. `y` may be `x`.
template <Normalisation kind, int kCols, bool kWeight, bool kBias, class Scalar>
[[gnu::noinline]] void normalise_row(const Scalar* x, RowStatistics<Scalar> row, const Scalar* weight,
                                     const Scalar* bias, Scalar* y) {
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P value = normalised<kind>(load<P>(x + j), row);
    if constexpr (kBias) {
      value = multiply_add(value, load<P>(weight + j), load<P>(bias + j));
    } else if constexpr (kWeight) {
      value = multiply(value, load<P>(weight + j));
    }
    store(y + j, value);
  });
}

/// d_weight += Σ_rows dy ∘ x̂ and, if there is a bias, d_bias += Σ_rows dy; rows are added in rising order.
/// `tape.statistics(i, x)` gives row i's. With kZeroStays, where dy is zero x̂ does not matter. `rows` are
/// those that are used.
template <Normalisation kind, int kRows, int kCols, bool kBias, bool kZeroStays = false, class Scalar,
          class Tape, class Rows = std::integral_constant<int, kRows>>
[[gnu::noinline]] void normalise_rows_backward_parameters(const Scalar* x, const Tape& tape, const Scalar* dy,
                                                          Scalar* d_weight, Scalar* d_bias, Rows rows = {}) {
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P weight_sum = broadcast<P>(Scalar(0));
    P bias_sum = broadcast<P>(Scalar(0));
    for (int i = 0; i < rows; ++i) {
      const P gradient = load<P>(dy + i * kCols + j);
      P value = normalised<kind>(load<P>(x + i * kCols + j), tape.statistics(i, x));
      if constexpr (kZeroStays) value = unless_zero(gradient, value);
      weight_sum = multiply_add(gradient, value, weight_sum);
      if constexpr (kBias) bias_sum = add(bias_sum, gradient);
    }
    store(d_weight + j, add(load<P>(d_weight + j), weight_sum));
    if constexpr (kBias) store(d_bias + j, add(load<P>(d_bias + j), bias_sum));
  });
}

/// dx = inverse · (dx̂ − mean(dx̂) − x̂ · mean(dx̂ ∘ x̂)) of one row, dx̂ = dy ∘ weight; without the mean of dx̂
/// for kRootMeanSquare. `dx` may be `x` or `dy`.
template <Normalisation kind, int kCols, bool kWeight, class Scalar>
[[gnu::noinline]] void normalise_row_backward(const Scalar* x, RowStatistics<Scalar> row,
                                              const Scalar* weight, const Scalar* dy, Scalar* dx) {
  const auto count = Scalar(Real<Scalar>(kCols));
  const auto gradient = [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    if constexpr (kWeight) return multiply(load<P>(dy + j), load<P>(weight + j));
    return load<P>(dy + j);
  };
  Scalar mean_gradient = 0;
  if constexpr (kind == Normalisation::kMeanAndVariance) {
    mean_gradient = divide(sum<Scalar, kCols>(gradient), count);
  }
  const Scalar dot = sum<Scalar, kCols>([&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    return multiply(gradient.template operator()<P>(j), normalised<kind>(load<P>(x + j), row));
  });
  const Scalar projection = divide(dot, count);
  for_each_packet<Scalar>(kCols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P centred = gradient.template operator()<P>(j);
    if constexpr (kind == Normalisation::kMeanAndVariance) {
      centred = subtract(centred, broadcast<P>(mean_gradient));
    }
    const P result =
        subtract_product(centred, normalised<kind>(load<P>(x + j), row), broadcast<P>(projection));
    store(dx + j, multiply(result, broadcast<P>(row.inverse)));
  });
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
