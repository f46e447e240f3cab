// Limits scores to ±cap by a hyperbolic tangent, for packets and scalars.
//
//   y = cap · tanh(x / cap),      dx = dy · (1 − tanh²(x / cap))
#pragma once

#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/kernels/simd/sigmoids.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// scores = cap · tanh(scores / cap), for `size` scores.
template <class Scalar>
[[gnu::noinline]] void softcap(int size, Scalar* scores, Scalar cap) {
  const Scalar inverse = divide(Scalar(Real<Scalar>(1)), cap);
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P scaled = multiply(load<P>(scores + i), broadcast<P>(inverse));
    store(scores + i, multiply(hyperbolic_tangent(scaled), broadcast<P>(cap)));
  });
}

/// d_scores *= 1 − tanh²(scores / cap), with the input scores. A zero gradient stays zero, whatever its score
/// is.
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

}  // namespace ATTUNE_NAMESPACE::kernels
