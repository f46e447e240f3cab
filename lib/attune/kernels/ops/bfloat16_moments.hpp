// Moments in 16 bits, the upper half of a float, with stochastic rounding of an optimizer's update.
//
// The probability of rounding up equals the fraction that rounding down would cut off (Forsythe, "Reprint of
// a Note on Rounding-off Errors", 1959; Gupta et al., "Deep Learning with Limited Numerical Precision",
// 2015). The many small changes of a moving average are each below one unit in the last of 8 bits, but arrive
// in the mean.
#pragma once

#include <bit>
#include <cstdint>

#include <attune/kernels/ops/update.hpp>
#include <attune/kernels/quantized.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Moments of consecutive parameters, and the number of parameters in the set before them.
struct Bfloat16Moments {
  std::uint16_t* values;
  std::uint32_t position;

  friend Bfloat16Moments operator+(const Bfloat16Moments& moments, int count) {
    return {moments.values + count, moments.position + static_cast<std::uint32_t>(count)};
  }
  friend Bfloat16Moments operator-(const Bfloat16Moments& moments, int count) { return moments + -count; }
};

/// 32 random bits for each position. They depend only on a step's key and the position: neither the packet
/// width nor the grouping of updates changes them. The mixing is C. Wellons' "lowbias32" ("Prospecting for
/// Hash Functions", 2018), because 32-bit processors and packets have no 64-bit product.
struct PositionBits {
  std::uint64_t key;

  [[nodiscard]] ATTUNE_INLINE std::uint32_t at(std::uint32_t position) const {
    std::uint32_t x = position * 0x9E3779B9u + static_cast<std::uint32_t>(key);
    x = (x ^ (x >> 16)) * 0x7FEB352Du ^ static_cast<std::uint32_t>(key >> 32);
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }
};

/// Rounds a float to one of its two neighbors in bf16, chosen by `random` < 2¹⁶. A value in bf16 stays. A
/// finite value stays finite, infinity stays infinity, and NaN stays NaN.
[[nodiscard]] ATTUNE_INLINE Bfloat16 stochastic_bf16(float value, std::uint32_t random) {
  constexpr std::uint32_t kLargest = 0x7F7F0000u, kInfinity = 0x7F800000u;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude <= kLargest) {
    bits += random;
  } else if (magnitude < kInfinity) {
    bits -= magnitude - kLargest;
  } else if (magnitude > kInfinity) {
    bits |= 0x400000u;
  }
  return {static_cast<std::uint16_t>(bits >> 16)};
}

namespace detail {

template <class P>
ATTUNE_INLINE P load_moments(const std::uint16_t* from) {
  Array<float, kLanes<P>> wide;
  for (int lane = 0; lane < kLanes<P>; ++lane)
    wide[lane] = std::bit_cast<float>(static_cast<std::uint32_t>(from[lane]) << 16);
  return load<P>(wide);
}
template <class P>
ATTUNE_INLINE void store_moments(std::uint16_t* to, const P& moments, const std::uint32_t* random,
                                 int shift) {
  Array<float, kLanes<P>> wide;
  store(wide, moments);
  for (int lane = 0; lane < kLanes<P>; ++lane)
    to[lane] = stochastic_bf16(wide[lane], random[lane] >> shift & 0xFFFFu).bits;
}

// Calls body(i, random bits of each lane) over [0, size) in packets.
template <class Body>
ATTUNE_INLINE void for_each_random_packet(int size, std::uint32_t position, const PositionBits& bits,
                                          const Body& body) {
  for_each_packet<float>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    Array<std::uint32_t, kLanes<P>> random;
    for (int lane = 0; lane < kLanes<P>; ++lane)
      random[lane] = bits.at(position + static_cast<std::uint32_t>(i + lane));
    body.template operator()<P>(i, random);
  });
}

}  // namespace detail

/// adam_update with moments that are rounded after the step of the parameters.
template <bool kEpsilonInside, bool kCoupled>
[[gnu::noinline]] void adam_update(int size, float* p, const float* g, Bfloat16Moments m, Bfloat16Moments v,
                                   const AdamCoefficients<float>& coefficients, PositionBits bits) {
  const AdamCoefficients<float> c = coefficients;  // a local copy, which stores cannot change
  detail::for_each_random_packet(
      size, m.position, bits, [&]<class P>(int i, const std::uint32_t* random) ATTUNE_INLINE_LAMBDA {
        P parameter = load<P>(p + i);
        P first = detail::load_moments<P>(m.values + i), second = detail::load_moments<P>(v.values + i);
        detail::adam_packet<kEpsilonInside, kCoupled>(parameter, load<P>(g + i), first, second, c);
        detail::store_moments(m.values + i, first, random, 0);
        detail::store_moments(v.values + i, second, random, 16);
        store(p + i, parameter);
      });
}

/// sgd_update with momentum, rounded likewise.
template <bool kNesterov>
[[gnu::noinline]] void sgd_update(int size, float* p, const float* g, Bfloat16Moments b,
                                  const SgdCoefficients<float>& c, PositionBits bits) {
  detail::for_each_random_packet(
      size, b.position, bits, [&]<class P>(int i, const std::uint32_t* random) ATTUNE_INLINE_LAMBDA {
        P parameter = load<P>(p + i), velocity = detail::load_moments<P>(b.values + i);
        detail::sgd_packet<true, kNesterov>(parameter, load<P>(g + i), velocity, c);
        detail::store_moments(b.values + i, velocity, random, 0);
        store(p + i, parameter);
      });
}

}  // namespace ATTUNE_NAMESPACE::kernels
