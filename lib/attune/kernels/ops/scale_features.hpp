// Scaling of a row by one factor per feature, and the gradients of such factors and of one for all.
#pragma once

#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// y = x ∘ factors, for `width` scalars; with kShared one factor is of all features. `y` may be `x` or
/// `factors`. With kZeroStays, y is zero for a zero x, whatever the factor is.
template <bool kShared, bool kZeroStays = false, class Scalar, class Width>
[[gnu::noinline]] void scale_features(Width width, const Scalar* x, const Scalar* factors, Scalar* y) {
  for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P value = load<P>(x + j), factor = kShared ? broadcast<P>(*factors) : load<P>(factors + j);
    store(y + j, multiply(value, unless_zero<kZeroStays>(value, factor)));
  });
}

/// Σ dy·x over rows of `width` scalars that are `stride` apart, in rising order. With kZeroStays a zero dy
/// adds nothing, whatever x is.
template <bool kZeroStays, class Scalar, class Width>
[[gnu::noinline]] Scalar sum_of_products(int rows, Width width, int stride, const Scalar* dy,
                                         const Scalar* x) {
  Scalar total(0);
  for (int i = 0; i < rows; ++i, dy += stride, x += stride) {
    total = add(total, sum<Scalar>(width, [dy, x]<class P>(int j) ATTUNE_INLINE_LAMBDA {
                  const P gradient = load<P>(dy + j);
                  return multiply(gradient, unless_zero<kZeroStays>(gradient, load<P>(x + j)));
                }));
  }
  return total;
}

/// sums += Σ_rows dy ∘ x over contiguous rows of `width` scalars, in rising order; with kShared one sum of
/// all features. With kZeroStays a zero dy adds nothing, whatever x is.
template <bool kShared, bool kZeroStays, class Scalar, class Rows, class Width>
[[gnu::noinline]] void add_feature_products(Rows rows, Width width, const Scalar* dy, const Scalar* x,
                                            Scalar* sums) {
  if constexpr (kShared) {
    *sums = add(*sums, sum_of_products<kZeroStays>(rows, width, width, dy, x));
  } else {
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
}

}  // namespace ATTUNE_NAMESPACE::kernels
