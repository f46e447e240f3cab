// The arithmetic policy, declared once, and the packets that every kernel computes with.
//
// A packet is what one instruction computes on: `Packet<Scalar, W>` is the widest type of at most W lanes that the
// target has, an Eigen packet or the scalar itself. Kernels are written once over it.
//
// `unfused` rounds a multiply-accumulate twice and exists on every target; `fused` rounds once and needs an FMA.
// Within a policy every operation here is correctly rounded (IEEE 754), so packets of any width and scalars give the
// same bits. Translation units must be compiled with -ffp-contract=off (the CMake target attune::attune does it).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

#if !defined(ATTUNE_FUSED)
#define ATTUNE_FUSED 0
#endif
#if ATTUNE_FUSED
#define ATTUNE_ARITHMETIC fused  // part of every symbol: the two policies never link into one function
#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
#error "attune: ATTUNE_FUSED=1 needs a target with fused multiply-add (x86: -mfma or -march=native; Cortex-M4F, M7, M33, M55)"
#endif
#else
#define ATTUNE_ARITHMETIC unfused
#endif

#if defined(__FAST_MATH__)
#error "attune: -ffast-math changes the results of training; compile without it"
#endif

#if defined(__clang__)
#define ATTUNE_UNROLL _Pragma("unroll")
#else
#define ATTUNE_UNROLL _Pragma("GCC unroll 32")
#endif
#define ATTUNE_INLINE [[gnu::always_inline]] inline
#define ATTUNE_INLINE_LAMBDA __attribute__((always_inline))

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

namespace detail {

template <class Scalar, class P, int kMaxLanes>
constexpr auto narrow() {
  constexpr int kLanes = Eigen::internal::unpacket_traits<P>::size;
  using Half = typename Eigen::internal::unpacket_traits<P>::half;
  if constexpr (kLanes <= kMaxLanes) {
    return std::type_identity<P>{};
  } else if constexpr (std::is_same_v<Half, P>) {
    return std::type_identity<Scalar>{};
  } else {
    return narrow<Scalar, Half, kMaxLanes>();
  }
}

}  // namespace detail

/// The widest packet of at most `kMaxLanes` lanes; `Scalar` itself where there is none.
template <class Scalar, int kMaxLanes = 1 << 10>
using Packet = typename decltype(
    detail::narrow<Scalar, typename Eigen::internal::packet_traits<Scalar>::type, kMaxLanes>())::type;

template <class P>
inline constexpr int kLanes = Eigen::internal::unpacket_traits<P>::size;

template <class P>
inline constexpr bool kIsScalar = std::is_floating_point_v<P>;

template <class P, class Scalar>
ATTUNE_INLINE P load(const Scalar* from) {
  return Eigen::internal::ploadu<P>(from);
}

template <class Scalar, class P>
ATTUNE_INLINE void store(Scalar* to, const P& value) {
  Eigen::internal::pstoreu(to, value);
}

template <class P, class Scalar>
ATTUNE_INLINE P broadcast(Scalar value) {
  return Eigen::internal::pset1<P>(value);
}

template <class P>
ATTUNE_INLINE P add(const P& a, const P& b) {
  return Eigen::internal::padd(a, b);
}

template <class P>
ATTUNE_INLINE P subtract(const P& a, const P& b) {
  return Eigen::internal::psub(a, b);
}

template <class P>
ATTUNE_INLINE P multiply(const P& a, const P& b) {
  return Eigen::internal::pmul(a, b);
}

/// a · b + c: one rounding in `fused`, two in `unfused`.
template <class P>
ATTUNE_INLINE P multiply_add(const P& a, const P& b, const P& c) {
#if ATTUNE_FUSED
  if constexpr (std::is_same_v<P, float>) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (std::is_same_v<P, double>) {
    return __builtin_fma(a, b, c);
  } else {
    return Eigen::internal::pmadd(a, b, c);
  }
#else
  return add(multiply(a, b), c);
#endif
}

/// c − a · b, rounded like multiply_add.
template <class P>
ATTUNE_INLINE P subtract_product(const P& c, const P& a, const P& b) {
#if ATTUNE_FUSED
  return multiply_add(Eigen::internal::pnegate(a), b, c);
#else
  return subtract(c, multiply(a, b));
#endif
}

template <class P>
ATTUNE_INLINE P maximum(const P& a, const P& b) {
  if constexpr (kIsScalar<P>) {
    return a > b ? a : b;
  } else {
    return Eigen::internal::pmax(a, b);
  }
}

/// |a|.
template <class P>
ATTUNE_INLINE P magnitude(const P& a) {
  if constexpr (kIsScalar<P>) {
    return a < 0 ? -a : a;
  } else {
    return Eigen::internal::pabs(a);
  }
}

/// `x < bound ? then : otherwise`, lane by lane; a NaN takes `otherwise`.
template <class P>
ATTUNE_INLINE P select_less(const P& x, const P& bound, const P& then, const P& otherwise) {
  if constexpr (kIsScalar<P>) {
    return x < bound ? then : otherwise;
  } else {
    return Eigen::internal::pselect(Eigen::internal::pcmp_lt(x, bound), then, otherwise);
  }
}

namespace detail {

// For what a target's vector unit only approximates: the scalar unit, lane by lane.
template <class P, class Function, class... Operands>
ATTUNE_INLINE P lane_by_lane(Function function, const Operands&... operands) {
  using Scalar = typename Eigen::internal::unpacket_traits<P>::type;
  constexpr int kArity = static_cast<int>(sizeof...(Operands));
  Scalar in[kArity][kLanes<P>];
  Scalar out[kLanes<P>];
  int operand = 0;
  (store(in[operand++], operands), ...);
  for (int lane = 0; lane < kLanes<P>; ++lane) {
    if constexpr (kArity == 1) {
      out[lane] = function(in[0][lane]);
    } else {
      out[lane] = function(in[0][lane], in[1][lane]);
    }
  }
  return load<P>(out);
}

}  // namespace detail

/// a / b, correctly rounded (32-bit NEON has only an estimate, so its lanes go through the scalar unit).
template <class P>
ATTUNE_INLINE P divide(const P& a, const P& b) {
#if defined(__ARM_NEON) && !defined(__aarch64__)
  if constexpr (!kIsScalar<P>) {
    return detail::lane_by_lane<P>([](auto x, auto y) { return x / y; }, a, b);
  }
#endif
  return Eigen::internal::pdiv(a, b);
}

/// √a, correctly rounded: Eigen's vector square root may be a reciprocal estimate (EIGEN_FAST_MATH), so it is not used.
ATTUNE_INLINE float square_root(float a) { return __builtin_sqrtf(a); }
ATTUNE_INLINE double square_root(double a) { return __builtin_sqrt(a); }
#if defined(EIGEN_VECTORIZE_SSE)
ATTUNE_INLINE Eigen::internal::Packet4f square_root(Eigen::internal::Packet4f a) { return _mm_sqrt_ps(a); }
ATTUNE_INLINE Eigen::internal::Packet2d square_root(Eigen::internal::Packet2d a) { return _mm_sqrt_pd(a); }
#endif
#if defined(EIGEN_VECTORIZE_AVX)
ATTUNE_INLINE Eigen::internal::Packet8f square_root(Eigen::internal::Packet8f a) { return _mm256_sqrt_ps(a); }
ATTUNE_INLINE Eigen::internal::Packet4d square_root(Eigen::internal::Packet4d a) { return _mm256_sqrt_pd(a); }
#endif
#if defined(EIGEN_VECTORIZE_AVX512)
ATTUNE_INLINE Eigen::internal::Packet16f square_root(Eigen::internal::Packet16f a) { return _mm512_sqrt_ps(a); }
ATTUNE_INLINE Eigen::internal::Packet8d square_root(Eigen::internal::Packet8d a) { return _mm512_sqrt_pd(a); }
#endif
#if defined(EIGEN_VECTORIZE_NEON)
ATTUNE_INLINE Eigen::internal::Packet4f square_root(Eigen::internal::Packet4f a) {
  return detail::lane_by_lane<Eigen::internal::Packet4f>([](float x) { return __builtin_sqrtf(x); }, a);
}
#endif

/// Calls `body.template operator()<P>(i)` over [0, size) in packets: the widest first, then narrower ones, then scalars.
/// Every index is visited once and in rising order.
template <class Scalar, int kMaxLanes = 1 << 10, class Body>
ATTUNE_INLINE void for_each_packet(int size, const Body& body, int from = 0) {
  using P = Packet<Scalar, kMaxLanes>;
  int i = from;
  for (; i + kLanes<P> <= size; i += kLanes<P>) body.template operator()<P>(i);
  if constexpr (kLanes<P> > 1) {
    if (i < size) for_each_packet<Scalar, kLanes<P> / 2>(size, body, i);
  }
}

}  // namespace attune::kernels
