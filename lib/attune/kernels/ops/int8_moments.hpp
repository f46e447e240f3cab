// Moments in 8 bits: blocks of 64 with one scale each (Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", 2022).
//
// The first moment is linear: m = c·scale with |c| ≤ 127. The second moment is stored as its root: √v =
// c·scale with 1 ≤ c ≤ 255. The root divides a parameter's step, and the floor of 1 keeps the smallest roots
// from becoming zero, which would leave ε alone as the divisor.
#pragma once

#include <algorithm>
#include <cstdint>

#include <attune/kernels/ops/bfloat16_moments.hpp>
#include <attune/kernels/ops/update.hpp>
#include <attune/kernels/simd/int8_rows.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// Moments per scale; the last block of a tensor may have fewer.
inline constexpr int kMomentBlock = 64;

/// Moments of consecutive parameters of a tensor, from the start of a block, and the number of parameters in
/// the set before them.
struct Int8Moments {
  std::uint8_t* codes;
  float* scales;
  std::uint32_t position;

  /// Advances by whole blocks.
  friend Int8Moments operator+(const Int8Moments& moments, int count) {
    return {moments.codes + count, moments.scales + count / kMomentBlock,
            moments.position + static_cast<std::uint32_t>(count)};
  }
};
/// Stands for moments that an update does not use.
struct NoMoments {
  friend NoMoments operator+(NoMoments, int) { return {}; }
};
/// Stands for PositionBits.
struct RoundToNearest {};

namespace detail {

// Adds the dither before rounding: zero, or one of 2¹⁶ numbers in (−½, ½).
ATTUNE_INLINE float dithered(float x, RoundToNearest, std::uint32_t, int) { return x; }
ATTUNE_INLINE float dithered(float x, const PositionBits& bits, std::uint32_t position, int shift) {
  const auto random = static_cast<float>(static_cast<int>(bits.at(position) >> shift & 0xFFFFu) - 0x8000);
  return add(x, multiply(add(random, 0.5f), 0x1p-16f));
}

// Quantizes a block of finite numbers. Returns the scale, which is 0 for numbers below 2⁻¹⁰⁰.
template <bool kRoots, class Rounding>
ATTUNE_INLINE void store_block(int count, const float* values, const Int8Moments& to,
                               const Rounding& rounding) {
  constexpr float kLevels = kRoots ? 255.0f : 127.0f;
  std::uint32_t largest = 0;
  for (int i = 0; i < count; ++i) largest = (std::max)(largest, magnitude_bits(values[i]));
  const float magnitude = std::bit_cast<float>(largest);
  const bool zero = magnitude < 0x1p-100f;
  *to.scales = zero ? 0.0f : magnitude / kLevels;
  const float inverse = zero ? 0.0f : kLevels / magnitude;
  for (int i = 0; i < count; ++i) {
    float code = dithered(multiply(values[i], inverse), rounding, to.position + static_cast<std::uint32_t>(i),
                          kRoots ? 16 : 0);
    if constexpr (kRoots) code = code < 1.0f ? 1.0f : code > kLevels ? kLevels : code;
    to.codes[i] = static_cast<std::uint8_t>(round_to_int8(code));
  }
}
template <bool kRoots>
ATTUNE_INLINE void load_block(int count, const Int8Moments& from, float* values) {
  const float scale = *from.scales;
  for (int i = 0; i < count; ++i) {
    const int code = kRoots ? from.codes[i] : static_cast<std::int8_t>(from.codes[i]);
    values[i] = multiply(static_cast<float>(code), scale);
  }
}

// Calls body(first, count) for each block of `size` parameters.
template <class Body>
ATTUNE_INLINE void for_each_block(int size, const Body& body) {
  for (int first = 0; first < size; first += kMomentBlock)
    body(first, (std::min)(kMomentBlock, size - first));
}

}  // namespace detail

/// adam_update with 8-bit moments, rounded after the step of the parameters. `m` may be NoMoments if β₁ is 0.
template <bool kEpsilonInside, bool kCoupled, class First, class Rounding>
[[gnu::noinline]] void adam_update(int size, float* p, const float* g, First m, Int8Moments v,
                                   const AdamCoefficients<float>& coefficients, Rounding rounding) {
  constexpr bool kFirst = std::is_same_v<First, Int8Moments>;
  const AdamCoefficients<float> c = coefficients;
  detail::for_each_block(size, [&](int begin, int count) ATTUNE_INLINE_LAMBDA {
    float first[kMomentBlock] = {}, root[kMomentBlock];
    if constexpr (kFirst) detail::load_block<false>(count, m + begin, first);
    detail::load_block<true>(count, v + begin, root);
    for_each_packet<float>(count, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      P parameter = load<P>(p + begin + i), m_packet = load<P>(first + i), v_packet = load<P>(root + i);
      v_packet = multiply(v_packet, v_packet);
      detail::adam_packet<kEpsilonInside, kCoupled>(parameter, load<P>(g + begin + i), m_packet, v_packet, c);
      store(p + begin + i, parameter);
      store(first + i, m_packet);
      store(root + i, square_root(v_packet));
    });
    if constexpr (kFirst) detail::store_block<false>(count, first, m + begin, rounding);
    detail::store_block<true>(count, root, v + begin, rounding);
  });
}

/// sgd_update with momentum, rounded likewise.
template <bool kNesterov, class Rounding>
[[gnu::noinline]] void sgd_update(int size, float* p, const float* g, Int8Moments b,
                                  const SgdCoefficients<float>& c, Rounding rounding) {
  detail::for_each_block(size, [&](int begin, int count) ATTUNE_INLINE_LAMBDA {
    float momentum[kMomentBlock];
    detail::load_block<false>(count, b + begin, momentum);
    for_each_packet<float>(count, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      P parameter = load<P>(p + begin + i), velocity = load<P>(momentum + i);
      detail::sgd_packet<true, kNesterov>(parameter, load<P>(g + begin + i), velocity, c);
      store(momentum + i, velocity);
      store(p + begin + i, parameter);
    });
    detail::store_block<false>(count, momentum, b + begin, rounding);
  });
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
