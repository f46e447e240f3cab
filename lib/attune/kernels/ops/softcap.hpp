// Scores kept within ±cap by a hyperbolic tangent of our own, with the same bits on every target: built from
// e^x and correctly rounded operations. Packets and scalars.
//
//   y = cap · tanh(x / cap),      dx = dy · (1 − tanh²(x / cap))
#pragma once

#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/kernels/simd/sigmoids.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// tanh(x) to 4 ulp. ±1 for ±∞; NaN stays NaN.
template <class P>
ATTUNE_INLINE P hyperbolic_tangent(const P& x) {
  using Scalar = ScalarOf<P>;
  using Constant = Real<Scalar>;
  // Below a half, where 1 − e^(−2|x|) would cancel, the seventh convergent of Lambert's continued fraction
  // x/(1 + x²/(3 + x²/(5 + …))), to 2e-16 relative.
  constexpr Constant kAbove[] = {1, 378, 17'325, 135'135};
  constexpr Constant kBelow[] = {28, 3'150, 62'370, 135'135};
  const P zero = broadcast<P>(Scalar(Constant(0)));
  const P one = broadcast<P>(Scalar(Constant(1)));
  const P half = broadcast<P>(Scalar(Constant(0.5)));
  const P z = magnitude(x);
  const P square = multiply(z, z);
  const P decay = exponential(detail::negate(add(z, z)));
  const P above = select_less(z, half, multiply(z, detail::polynomial(square, kAbove)), subtract(one, decay));
  const P below = select_less(z, half, detail::polynomial(square, kBelow), add(one, decay));
  const P tangent = divide(above, below);
  return select_less(x, zero, detail::negate(tangent), tangent);
}

/// scores = cap · tanh(scores / cap), `size` of them.
template <class Scalar>
[[gnu::noinline]] void softcap(int size, Scalar* scores, Scalar cap) {
  const Scalar inverse = divide(Scalar(Real<Scalar>(1)), cap);
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P scaled = multiply(load<P>(scores + i), broadcast<P>(inverse));
    store(scores + i, multiply(hyperbolic_tangent(scaled), broadcast<P>(cap)));
  });
}

/// d_scores *= 1 − tanh²(scores / cap), of the scores that went in. A gradient of zero stays zero, whatever
/// its score is.
template <class Scalar>
[[gnu::noinline]] void softcap_backward(int size, const Scalar* scores, Scalar* d_scores, Scalar cap) {
  const Scalar inverse = divide(Scalar(Real<Scalar>(1)), cap);
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P tangent = hyperbolic_tangent(multiply(load<P>(scores + i), broadcast<P>(inverse)));
    const P gradient = load<P>(d_scores + i);
    const P slope = subtract_product(broadcast<P>(Scalar(Real<Scalar>(1))), tangent, tangent);
    store(d_scores + i, unless_zero(gradient, multiply(gradient, slope)));
  });
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
