// Scaling of a row by one factor per feature, and the gradients of such factors and of one for all.
#pragma once

#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// y = x ∘ factors, for `width` scalars. `y` may be `x`.
template <class Scalar, class Width>
[[gnu::noinline]] void scale_features(Width width, const Scalar* x, const Scalar* factors, Scalar* y) {
  for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    store(y + j, multiply(load<P>(x + j), load<P>(factors + j)));
  });
}

/// sums[1, width] += Σ_rows dy ∘ x over contiguous rows of `width` scalars, in rising order. With kZeroStays
/// a zero dy adds nothing, whatever x is.
template <bool kZeroStays, class Scalar, class Rows, class Width>
[[gnu::noinline]] void add_feature_products(Rows rows, Width width, const Scalar* dy, const Scalar* x,
                                            Scalar* sums) {
  for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    P sum = broadcast<P>(Scalar(0));
    for (int i = 0; i < rows; ++i) {
      const P gradient = load<P>(dy + i * width + j);
      const P value = unless_zero<kZeroStays>(gradient, load<P>(x + i * width + j));
      sum = multiply_add(gradient, value, sum);
    }
    store(sums + j, add(load<P>(sums + j), sum));
  });
}

/// Σ dy·x over rows of kSize scalars that are `stride` apart, in rising order. With kZeroStays a zero dy adds
/// nothing, whatever x is.
template <int kSize, bool kZeroStays, class Scalar>
[[gnu::noinline]] Scalar sum_of_products(int rows, int stride, const Scalar* dy, const Scalar* x) {
  Scalar total(0);
  for (int i = 0; i < rows; ++i, dy += stride, x += stride) {
    total = add(total, sum<Scalar, kSize>([dy, x]<class P>(int j) ATTUNE_INLINE_LAMBDA {
                  const P gradient = load<P>(dy + j);
                  return multiply(gradient, unless_zero<kZeroStays>(gradient, load<P>(x + j)));
                }));
  }
  return total;
}

}  // namespace ATTUNE_NAMESPACE::kernels
