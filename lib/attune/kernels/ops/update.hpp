// The optimizers' pass over one tensor of parameters, its gradient and its moments.
#pragma once

#include <cstring>

#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Adam's coefficients of a step, equal for all elements.
template <class Scalar>
struct AdamCoefficients {
  Scalar beta1, one_minus_beta1;
  Scalar beta2, one_minus_beta2;
  Scalar step_size;     // learning rate / (1 − β₁ᵗ)
  Scalar second_scale;  // 1/√(1 − β₂ᵗ) outside the root, 1/(1 − β₂ᵗ) inside it
  Scalar epsilon;
  Scalar decay;           // decoupled: factor on the parameters
  Scalar l2;              // coupled: times the parameter, added to its gradient
  Scalar gradient_scale;  // from clipping
};

namespace detail {

// One packet of adam_update.
template <bool kEpsilonInside, bool kCoupled, class P>
ATTUNE_INLINE void adam_packet(P& parameter, P gradient, P& first, P& second,
                               const AdamCoefficients<ScalarOf<P>>& c) {
  gradient = multiply(gradient, broadcast<P>(c.gradient_scale));
  if constexpr (kCoupled) gradient = multiply_add(parameter, broadcast<P>(c.l2), gradient);
  first = multiply_add(gradient, broadcast<P>(c.one_minus_beta1), multiply(first, broadcast<P>(c.beta1)));
  second = multiply_add(multiply(gradient, gradient), broadcast<P>(c.one_minus_beta2),
                        multiply(second, broadcast<P>(c.beta2)));
  const P scale = broadcast<P>(c.second_scale), epsilon = broadcast<P>(c.epsilon);
  const P denominator = kEpsilonInside ? square_root(multiply_add(second, scale, epsilon))
                                       : multiply_add(square_root(second), scale, epsilon);
  const P step = divide(multiply(first, broadcast<P>(c.step_size)), denominator);
  if constexpr (!kCoupled) parameter = multiply(parameter, broadcast<P>(c.decay));
  parameter = subtract(parameter, step);
}

// adam_update(). Unless `cleared` is null, zeros the first gradients there, and returns their number.
template <bool kEpsilonInside, bool kCoupled, class Scalar>
ATTUNE_INLINE int adam_elements(int size, Scalar* p, const Scalar* g, Scalar* m, Scalar* v,
                                const AdamCoefficients<Scalar>& coefficients,
                                [[maybe_unused]] Scalar* cleared) {
  const AdamCoefficients<Scalar> c =
      coefficients;  // stores to p, m and v cannot change a local copy, so it stays in registers
  int cleared_count = 0;
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float>) {
    if constexpr (kAdamPairs && !kEpsilonInside && !kCoupled) {
      const int pairs = size >> 1;
      if (pairs > 0) {
        adam_pairs(pairs, p, g, m, v, cleared,
                   {{c.beta1, c.one_minus_beta1, c.beta2, c.one_minus_beta2, c.step_size, c.second_scale,
                     c.epsilon, c.decay, c.gradient_scale}});
        cleared_count = 2 * pairs;
      }
      size &= 1;
    }
#if !ATTUNE_FOR_SIZE
    for (int pairs = size >> 1; pairs > 0; --pairs) {
      FourPairs r = load_pairs(p, g, m, v);
      ATTUNE_UNROLL for (int i = 0; i < 2; ++i) {
        adam_packet<kEpsilonInside, kCoupled>(r.lane[i], r.lane[2 + i], r.lane[4 + i], r.lane[6 + i], c);
      }
      store_pairs(p, m, v, r);
    }
    size &= 1;
#endif
  }
#endif
  const auto update = [=, &c]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    P parameter = load<P>(p + i), first = load<P>(m + i), second = load<P>(v + i);
    adam_packet<kEpsilonInside, kCoupled>(parameter, load<P>(g + i), first, second, c);
    store(m + i, first);
    store(v + i, second);
    store(p + i, parameter);
  };
#if ATTUNE_CORTEX_M_FPU && ATTUNE_FOR_SIZE
  if constexpr (std::is_same_v<Scalar, float>) {
    if (size <= 0) return cleared_count;
    int i = 0;
    do {
      update.template operator()<Scalar>(i);
    } while (++i != size);  // compilers keep the check at the start of a for loop here
    return cleared_count;
  }
#endif
  for_each_packet<Scalar>(size, update);
  return cleared_count;
}

}  // namespace detail

/// m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  p ← decay·p − step·m / (√v·second_scale + ε)   (ε inside:
/// √(v·second_scale + ε)). In float, m and v are accurate to 2 ulp of their larger term, and p to 6 ulp of
/// the larger of itself and the step.
template <bool kEpsilonInside, bool kCoupled, class Scalar>
[[gnu::noinline]] void adam_update(int size, Scalar* p, const Scalar* g, Scalar* m, Scalar* v,
                                   const AdamCoefficients<Scalar>& coefficients) {
  detail::adam_elements<kEpsilonInside, kCoupled>(size, p, g, m, v, coefficients,
                                                  static_cast<Scalar*>(nullptr));
}

/// The same, then zeros the gradients. On a Cortex-M4 this takes no extra time.
template <bool kEpsilonInside, bool kCoupled, class Scalar>
[[gnu::noinline]] void adam_update_and_clear(int size, Scalar* p, Scalar* g, Scalar* m, Scalar* v,
                                             const AdamCoefficients<Scalar>& coefficients) {
  const int cleared = detail::adam_elements<kEpsilonInside, kCoupled>(size, p, g, m, v, coefficients, g);
  if (cleared < size) {
    std::memset(static_cast<void*>(g + cleared), 0,
                sizeof(Scalar) * static_cast<std::size_t>(size - cleared));
  }
}

/// adam_update without a first moment: β₁ is 0.
template <bool kEpsilonInside, bool kCoupled, class Scalar>
[[gnu::noinline]] void adam_update(int size, Scalar* p, const Scalar* g, Scalar* v,
                                   const AdamCoefficients<Scalar>& coefficients) {
  const AdamCoefficients<Scalar> c = coefficients;
  for_each_packet<Scalar>(size, [=, &c]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    P parameter = load<P>(p + i), first = broadcast<P>(Scalar(0)), second = load<P>(v + i);
    detail::adam_packet<kEpsilonInside, kCoupled>(parameter, load<P>(g + i), first, second, c);
    store(v + i, second);
    store(p + i, parameter);
  });
}

template <class Scalar>
struct SgdCoefficients {
  Scalar learning_rate;
  Scalar momentum;
  Scalar intake;  // 1 − dampening; 1 on the first step
  Scalar l2;
  Scalar gradient_scale;
};

namespace detail {

// One packet of sgd_update.
template <bool kMomentum, bool kNesterov, class P>
ATTUNE_INLINE void sgd_packet(P& parameter, const P& gradient, [[maybe_unused]] P& velocity,
                              const SgdCoefficients<ScalarOf<P>>& c) {
  P step = multiply_add(parameter, broadcast<P>(c.l2), multiply(gradient, broadcast<P>(c.gradient_scale)));
  if constexpr (kMomentum) {
    velocity = multiply_add(step, broadcast<P>(c.intake), multiply(velocity, broadcast<P>(c.momentum)));
    step = kNesterov ? multiply_add(velocity, broadcast<P>(c.momentum), step) : velocity;
  }
  parameter = subtract_product(parameter, step, broadcast<P>(c.learning_rate));
}

}  // namespace detail

/// b ← momentum·b + intake·g,  p ← p − lr·b   (Nesterov: p − lr·(g + momentum·b)). g includes weight decay.
template <bool kMomentum, bool kNesterov, class Scalar>
[[gnu::noinline]] void sgd_update(int size, Scalar* p, const Scalar* g, Scalar* b,
                                  const SgdCoefficients<Scalar>& coefficients) {
  const SgdCoefficients<Scalar> c = coefficients;  // a copy stays in registers
  int done = 0;
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
  if constexpr (std::is_same_v<Scalar, float>) {
    // Four at a time do not wait for each other's results.
    for (; done + 4 <= size; done += 4) {
      float parameter[4], gradient[4], velocity[4]{};
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) {
        parameter[i] = p[done + i], gradient[i] = g[done + i];
        if constexpr (kMomentum) velocity[i] = b[done + i];
      }
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) {
        detail::sgd_packet<kMomentum, kNesterov>(parameter[i], gradient[i], velocity[i], c);
      }
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) {
        if constexpr (kMomentum) b[done + i] = velocity[i];
        p[done + i] = parameter[i];
      }
    }
  }
#endif
  const auto update = [=, &c]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    P parameter = load<P>(p + i), velocity{};
    if constexpr (kMomentum) velocity = load<P>(b + i);
    detail::sgd_packet<kMomentum, kNesterov>(parameter, load<P>(g + i), velocity, c);
    if constexpr (kMomentum) store(b + i, velocity);
    store(p + i, parameter);
  };
  for_each_packet<Scalar>(size, update, done);
}

}  // namespace ATTUNE_NAMESPACE::kernels
