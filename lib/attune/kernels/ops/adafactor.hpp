// Adafactor's pass over one tensor (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear
// Memory Cost", 2018, algorithms 4 and 5). It stores row means and column means of the second moment.
#pragma once

#include <limits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/bfloat16_weights.hpp>
#include <attune/kernels/ops/squares.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Coefficients of a step, equal for all elements.
template <class Scalar>
struct AdafactorCoefficients {
  Scalar beta2, one_minus_beta2;
  Scalar step_size;       // absolute, or relative to the root mean square of the parameters
  Scalar least_rms;       // ε₂: smallest root mean square of parameters, for a relative step
  Scalar epsilon;         // ε₁, added to g²
  Scalar clipping;        // d: the largest root mean square of an update
  Scalar decay;           // factor on the parameters
  Scalar gradient_scale;  // from clipping
};

/// The second moment of a matrix [rows, cols]: row means, then column means. A vector stores each element.
template <class Scalar>
struct FactoredMoments {
  Scalar* values;
  int rows, cols;

  [[nodiscard]] Scalar* of_columns() const { return rows == 1 ? values : values + rows; }
  /// A tensor is updated as a whole, so there is nothing to advance to.
  friend FactoredMoments operator+(const FactoredMoments& moments, int) { return moments; }
};

namespace detail {

inline constexpr int kFactoredColumns = 64;  // computed at a time

// Limit of an update's elements, so that their squares cannot overflow: 2⁵⁰ in float.
template <class Scalar>
inline constexpr Scalar kLargestUpdate = Scalar(0x1p50f);

// R ← β₂R + (1−β₂)·row means of g² + ε₁, and C likewise over columns.
template <class Scalar>
[[gnu::noinline]] void update_factors(const Scalar* g, const FactoredMoments<Scalar>& v,
                                      const AdafactorCoefficients<Scalar>& c) {
  Scalar* const columns = v.of_columns();
  for_each_packet<Scalar>(v.cols, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    store(columns + j, multiply(load<P>(columns + j), broadcast<P>(c.beta2)));
  });
  const Scalar weight = c.one_minus_beta2 / static_cast<Scalar>(v.rows);
  Scalar scaled[kFactoredColumns];
  for (int row = 0; row < v.rows; ++row, g += v.cols) {
    Scalar sum = 0;
    for (int begin = 0; begin < v.cols; begin += kFactoredColumns) {
      const int count = smaller(kFactoredColumns, v.cols - begin);
      for_each_packet<Scalar>(count, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        const P x = multiply(load<P>(g + begin + j), broadcast<P>(c.gradient_scale));
        Scalar* const column = columns + begin + j;
        const P square = multiply_add(x, x, broadcast<P>(c.epsilon));
        store(column, multiply_add(square, broadcast<P>(weight), load<P>(column)));
        store(scaled + j, x);
      });
      sum = add(sum, sum_of_squares(count, static_cast<const Scalar*>(scaled)));
    }
    if (v.rows > 1) {
      const Scalar mean = add(sum / static_cast<Scalar>(v.cols), c.epsilon);
      v.values[row] = multiply_add(mean, c.one_minus_beta2, multiply(v.values[row], c.beta2));
    }
  }
}

// 1/√(R/mean of R) of a row, and 1/√C.
template <class Scalar>
ATTUNE_INLINE Scalar inverse_root(Scalar x) {
  constexpr Scalar kMin = Scalar(0x1p-120f);  // for rows that vanish beside others
  return 1 / square_root(larger(x, kMin));
}

// Calls body(first element, count, u) for blocks of elements, with u = g/√v̂, v̂ = R·C/mean(R).
template <class Scalar, class Body>
ATTUNE_INLINE void for_each_update(const Scalar* g, const FactoredMoments<Scalar>& v, Scalar mean_of_rows,
                                   Scalar gradient_scale, const Body& body) {
  Scalar roots[kFactoredColumns], update[kFactoredColumns];
  for (int begin = 0; begin < v.cols; begin += kFactoredColumns) {
    const int count = smaller(kFactoredColumns, v.cols - begin);
    for (int j = 0; j < count; ++j) roots[j] = inverse_root(v.of_columns()[begin + j]);
    for (int row = 0; row < v.rows; ++row) {
      const Scalar root = v.rows > 1 ? inverse_root(v.values[row] / mean_of_rows) : Scalar(1);
      const Scalar* const of_row = g + row * v.cols + begin;
      for_each_packet<Scalar>(count, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        const P largest = broadcast<P>(kLargestUpdate<Scalar>), least = negate(largest);
        const P x = multiply(load<P>(of_row + j), broadcast<P>(gradient_scale));
        const P u = multiply(multiply(x, broadcast<P>(root)), load<P>(roots + j));
        store(update + j, maximum(least, select_less(u, largest, u, largest)));
      });
      body(row * v.cols + begin, count, static_cast<const Scalar*>(update));
    }
  }
}

template <class Scalar>
ATTUNE_INLINE Scalar root_mean_square(Scalar sum, int size) {
  return square_root(sum / static_cast<Scalar>(size));
}
// The same of parameters whose squares overflow: of their multiples.
template <class Scalar>
[[gnu::noinline, gnu::cold]] Scalar root_mean_square_of_large(int size, const auto& p) {
  constexpr Scalar kUnit = [] {  // 2⁶⁴ in float, half the range of exponents
    Scalar unit = 1;
    for (int i = 0; i < std::numeric_limits<Scalar>::max_exponent / 2; ++i) unit *= 2;
    return unit;
  }();
  Scalar sum = 0;
  for (int i = 0; i < size; ++i) {
    const Scalar x = p[i] / kUnit;
    sum = multiply_add(x, x, sum);
  }
  return multiply(root_mean_square(sum, size), kUnit);
}

}  // namespace detail

/// p ← decay·p − α·u/max(1, RMS(u)/d) for a whole tensor, with u = g/√v̂. α is the step size, times max(ε₂,
/// RMS(p)) for a relative step. `p` is a pointer to scalars, or Bfloat16Parameters.
template <bool kRelative, class Parameters, class Scalar>
[[gnu::noinline]] void adafactor_update(Parameters p, const Scalar* g, FactoredMoments<Scalar> v,
                                        const AdafactorCoefficients<Scalar>& c) {
  const int size = v.rows * v.cols;
  detail::update_factors(g, v, c);
  Scalar mean_of_rows = 0;
  if (v.rows > 1) {
    for (int row = 0; row < v.rows; ++row) mean_of_rows = add(mean_of_rows, v.values[row]);
    mean_of_rows = mean_of_rows / static_cast<Scalar>(v.rows);
  }
  Scalar squares = 0;
  detail::for_each_update(g, v, mean_of_rows, c.gradient_scale, [&](int, int count, const Scalar* u) {
    squares = add(squares, sum_of_squares(count, u));
  });
  const Scalar clipped = detail::root_mean_square(squares, size) / c.clipping;
  Scalar step = clipped > 1 ? c.step_size / clipped : c.step_size;
  if constexpr (kRelative) {
    Scalar rms = detail::root_mean_square(sum_of_squares(size, p), size);
    if (rms - rms != 0) rms = detail::root_mean_square_of_large<Scalar>(size, p);
    step = multiply(step, larger(c.least_rms, rms));
  }
  detail::for_each_update(g, v, mean_of_rows, c.gradient_scale, [&](int first, int count, const Scalar* u) {
    update_parameters(
        p + first, count, [&](int begin, int size_of_block, Scalar* of_block) ATTUNE_INLINE_LAMBDA {
          for_each_packet<Scalar>(size_of_block, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
            const P kept = multiply(load<P>(of_block + j), broadcast<P>(c.decay));
            store(of_block + j, subtract_product(kept, load<P>(u + begin + j), broadcast<P>(step)));
          });
        });
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
