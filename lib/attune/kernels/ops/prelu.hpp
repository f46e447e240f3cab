// PReLU of a row, x where x > 0, else slope·x, and its gradients. With kShared one slope is of all features,
// else each has its own.
#pragma once

#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

template <class P, bool kShared, class Scalar>
ATTUNE_INLINE P slope_at(const Scalar* slopes, int j) {
  if constexpr (kShared) return broadcast<P>(*slopes);
  return load<P>(slopes + j);
}
/// dy·min(x, 0): the derivative for a slope.
template <bool kZeroStays, class P>
ATTUNE_INLINE P slope_gradient(const P& x, const P& dy) {
  const P zero = broadcast<P>(ScalarOf<P>(0));
  return multiply(dy, unless_zero<kZeroStays>(dy, select_less(zero, x, zero, x)));
}

}  // namespace detail

/// y = x where x > 0, else slope·x, for `width` scalars. `y` may be `x`.
template <bool kShared, class Scalar, class Width>
[[gnu::noinline]] void prelu(Width width, const Scalar* x, const Scalar* slopes, Scalar* y) {
  for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P value = load<P>(x + j), scaled = multiply(value, detail::slope_at<P, kShared>(slopes, j));
    store(y + j, select_less(broadcast<P>(Scalar(0)), value, value, scaled));
  });
}
/// dx = dy where x > 0, else slope·dy. `dx` may be `dy` or `x`.
template <bool kShared, class Scalar, class Width>
[[gnu::noinline]] void prelu_backward(Width width, const Scalar* x, const Scalar* slopes, const Scalar* dy,
                                      Scalar* dx) {
  for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P gradient = load<P>(dy + j), scaled = multiply(gradient, detail::slope_at<P, kShared>(slopes, j));
    store(dx + j, select_less(broadcast<P>(Scalar(0)), load<P>(x + j), gradient, scaled));
  });
}
/// sums += Σ_rows dy·min(x, 0) for each feature, or for all together, in rising order of the rows. With
/// kZeroStays a zero dy adds nothing, whatever x is.
template <bool kShared, bool kZeroStays, class Scalar, class Rows, class Width>
[[gnu::noinline]] void add_slope_gradients(Rows rows, Width width, const Scalar* x, const Scalar* dy,
                                           Scalar* sums) {
  if constexpr (kShared) {
    Scalar total(0);
    for (int i = 0; i < rows; ++i) {
      const Scalar *x_row = x + i * width, *dy_row = dy + i * width;
      total = add(total, sum<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
                    return detail::slope_gradient<kZeroStays>(load<P>(x_row + j), load<P>(dy_row + j));
                  }));
    }
    *sums = add(*sums, total);
  } else {
    for_each_packet<Scalar>(width, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      P total = broadcast<P>(Scalar(0));
      for (int i = 0; i < rows; ++i) {
        const int at = i * width + j;
        total = add(total, detail::slope_gradient<kZeroStays>(load<P>(x + at), load<P>(dy + at)));
      }
      store(sums + j, add(load<P>(sums + j), total));
    });
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
