// The Cholesky factorization of a small symmetric matrix, A = L·Lᵀ, with a fixed order of additions: every
// target gets the same bits. Eigen's result differs by vector unit.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Replaces the lower half of A[size, size] by L. lower(i, j) refers to an element, j ≤ i. Returns the least
/// pivot, relative to its element of A: the share of a feature that does not follow from those before it. 0
/// if that is not finite, or at most `noise`, which may be rounding alone.
template <int size, class Scalar>
Scalar factor_cholesky(auto& lower, Scalar noise) {
  Scalar least = 1;
  for (int j = 0; j < size; ++j) {
    const Scalar diagonal = lower(j, j);
    for (int i = j; i < size; ++i) {
      Scalar sum = lower(i, j);
      for (int k = 0; k < j; ++k) sum = kernels::multiply_add(-lower(i, k), lower(j, k), sum);
      if (i > j) {
        lower(i, j) = sum / lower(j, j);
      } else if (sum > noise * diagonal && sum - sum == 0) {
        least = smaller(least, sum / diagonal);
        lower(j, j) = kernels::square_root(sum);
      } else {
        return 0;
      }
    }
  }
  return least;
}

/// x ← L⁻¹·x. Elements of x are `stride` apart.
template <int size, class Scalar>
void solve_lower(const auto& lower, Scalar* x, int stride = 1) {
  for (int i = 0; i < size; ++i) {
    Scalar sum = x[i * stride];
    for (int k = 0; k < i; ++k) sum = kernels::multiply_add(-lower(i, k), x[k * stride], sum);
    x[i * stride] = sum / lower(i, i);
  }
}
/// x ← L⁻ᵀ·x.
template <int size, class Scalar>
void solve_lower_transposed(const auto& lower, Scalar* x, int stride = 1) {
  for (int i = size - 1; i >= 0; --i) {
    Scalar sum = x[i * stride];
    for (int k = i + 1; k < size; ++k) sum = kernels::multiply_add(-lower(k, i), x[k * stride], sum);
    x[i * stride] = sum / lower(i, i);
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
