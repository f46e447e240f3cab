// Moments in 8 bits: blocks of 64 with one scale each (Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", 2022).
//
// The first moment is linear: m = c·scale with |c| ≤ 127. The second moment is stored as its root: √v =
// c·scale with 1 ≤ c ≤ 255. The root divides a parameter's step, and the floor of 1 keeps the smallest roots
// from becoming zero, which would leave ε alone as the divisor.
#pragma once

#include <bit>
#include <cstdint>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/bfloat16_moments.hpp>
#include <attune/kernels/ops/update.hpp>
#include <attune/kernels/simd/dequantize.hpp>

namespace ATTUNE_NAMESPACE::kernels {

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
/// Stands for moments that an update does not use: zeros that nobody stores.
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

// The numbers of some codes.
template <bool kRoots, class P>
ATTUNE_INLINE P load_codes(const std::uint8_t* codes, float scale) {
  using Code = std::conditional_t<kRoots, std::uint8_t, std::int8_t>;
  constexpr int kWidth = kLanes<P>;
  if constexpr (kWidth == 1) {
    return multiply(static_cast<float>(static_cast<Code>(*codes)), scale);
  } else {
    const auto integers =
        __builtin_convertvector((load_vector<Code, kWidth>(codes)), Vector<std::int32_t, kWidth>);
    return multiply(P(__builtin_convertvector(integers, Vector<float, kWidth>)), broadcast<P>(scale));
  }
}
// The scale of a block, and the numbers of some of its codes.
ATTUNE_INLINE float block_scale(const Int8Moments& block) { return *block.scales; }
ATTUNE_INLINE float block_scale(NoMoments) { return 0; }
template <bool kRoots, class P>
ATTUNE_INLINE P load_moments(const Int8Moments& block, int i, float scale) {
  return load_codes<kRoots, P>(block.codes + i, scale);
}
template <bool kRoots, class P>
ATTUNE_INLINE P load_moments(NoMoments, int, float) {
  return broadcast<P>(0.0f);
}

// A block of new moments, and the bits of their largest magnitude, times two.
struct MomentsOfBlock {
  float values[kMomentBlock];
  std::uint32_t twice_largest = 0;

  template <class P>
  ATTUNE_INLINE void set(int i, const P& value) {
    store(values + i, value);
    if constexpr (kLanes<P> == 1) {
      twice_largest = larger(twice_largest, std::bit_cast<std::uint32_t>(value) << 1);
    }
  }
  ATTUNE_INLINE float largest(int count) const {
    std::uint32_t most = twice_largest;
    constexpr int kWidest = kLanes<Packet<float>>;
    if constexpr (kWidest > 1) {
      for (int i = 0; i < count; ++i) most = larger(most, std::bit_cast<std::uint32_t>(values[i]) << 1);
    }
    return std::bit_cast<float>(most >> 1);
  }
};

// Quantizes a block of finite numbers. The scale becomes 0 for numbers below 2⁻¹⁰⁰.
template <bool kRoots, class Rounding>
ATTUNE_INLINE void store_block(int count, const MomentsOfBlock& block, const Int8Moments& to,
                               const Rounding& rounding) {
  constexpr int kLevels = kRoots ? 255 : 127;
  const float largest = block.largest(count);
  const bool zero = largest < 0x1p-100f;
  *to.scales = zero ? 0.0f : largest / kLevels;
  const float inverse = zero ? 0.0f : kLevels / largest;
  for (int i = 0; i < count; ++i) {
    const float code = dithered(multiply(block.values[i], inverse), rounding,
                                to.position + static_cast<std::uint32_t>(i), kRoots ? 16 : 0);
    // Codes are in the lowest byte of a sum.
    constexpr int kZero = std::bit_cast<int>(0x1.8p23f);
    int rounded = std::bit_cast<int>(add(code, 0x1.8p23f));
    // Rounding makes the largest product a unit larger than kLevels at times, and the dither then makes it 1
    // more: as a signed byte, 128 would be −128.
    if constexpr (kRoots) rounded = larger(rounded, kZero + 1);
    if constexpr (!std::is_same_v<Rounding, RoundToNearest>) {
      rounded = clamp(rounded, kZero - kLevels, kZero + kLevels);
    }
    to.codes[i] = static_cast<std::uint8_t>(rounded & 0xFF);
  }
}

template <bool kRoots, class Rounding>
ATTUNE_INLINE void store_block(int, const MomentsOfBlock&, NoMoments, const Rounding&) {}

// Calls body(first, count) for each block of `size` parameters.
template <class Body>
ATTUNE_INLINE void for_each_block(int size, const Body& body) {
  for (int first = 0; first < size; first += kMomentBlock) body(first, smaller(kMomentBlock, size - first));
}

}  // namespace detail

/// adam_update with 8-bit moments, rounded after the step of the parameters. `m` may be NoMoments if β₁ is 0.
template <bool kEpsilonInside, bool kCoupled, class First, class Rounding>
[[gnu::noinline]] void adam_update(int size, float* p, const float* g, First m, Int8Moments v,
                                   const AdamCoefficients<float>& coefficients, Rounding rounding) {
  const AdamCoefficients<float> c = coefficients;
  detail::for_each_block(size, [&](int begin, int count) ATTUNE_INLINE_LAMBDA {
    const Int8Moments roots = v + begin;
    const float root_scale = *roots.scales;
    detail::MomentsOfBlock first, root;
    const First firsts = m + begin;
    const float first_scale = detail::block_scale(firsts);
    for_each_packet<float>(count, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      P parameter = load<P>(p + begin + i);
      P m_packet = detail::load_moments<false, P>(firsts, i, first_scale);
      P v_packet = detail::load_moments<true, P>(roots, i, root_scale);
      v_packet = multiply(v_packet, v_packet);
      detail::adam_packet<kEpsilonInside, kCoupled>(parameter, load<P>(g + begin + i), m_packet, v_packet, c);
      store(p + begin + i, parameter);
      first.set(i, m_packet);
      root.set(i, square_root(v_packet));
    });
    detail::store_block<false>(count, first, firsts, rounding);
    detail::store_block<true>(count, root, roots, rounding);
  });
}

/// sgd_update with momentum, rounded likewise.
template <bool kNesterov, class Rounding>
[[gnu::noinline]] void sgd_update(int size, float* p, const float* g, Int8Moments b,
                                  const SgdCoefficients<float>& coefficients, Rounding rounding) {
  const SgdCoefficients<float> c = coefficients;
  detail::for_each_block(size, [&](int begin, int count) ATTUNE_INLINE_LAMBDA {
    const Int8Moments block = b + begin;
    const float scale = *block.scales;
    detail::MomentsOfBlock momentum;
    for_each_packet<float>(count, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
      P parameter = load<P>(p + begin + i), velocity = detail::load_codes<false, P>(block.codes + i, scale);
      detail::sgd_packet<true, kNesterov>(parameter, load<P>(g + begin + i), velocity, c);
      momentum.set(i, velocity);
      store(p + begin + i, parameter);
    });
    detail::store_block<false>(count, momentum, block, rounding);
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
