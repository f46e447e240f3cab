// Random numbers: the same seed gives the same sequence on every target.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <attune/kernels/simd/elementary.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): number n is
/// mix(start + n·γ), with γ = 2⁶⁴ over the golden ratio. So each number can be computed without the numbers
/// before it.
inline constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15u;
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace detail

/// PCG-XSH-RR 64/32 (M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms
/// for Random Number Generation", 2014). 8 bytes; copies continue independently.
class Rng {
 public:
  /// Starts the sequence of a seed.
  explicit constexpr Rng(std::uint64_t seed) : state_(seed + kIncrement) { (void)next(); }

  /// 32 uniform bits.
  constexpr std::uint32_t next() {
    const std::uint64_t old = state_;
    state_ = old * kFactor + kIncrement;
    const auto xorshifted = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
    return std::rotr(xorshifted, static_cast<int>(old >> 59));
  }

  /// Skips `numbers` numbers, without computing them (Brown, "Random Number Generation with Arbitrary
  /// Strides", 1994).
  constexpr void skip(std::uint64_t numbers) {
    std::uint64_t factor = kFactor, increment = kIncrement;
    for (; numbers > 0; numbers >>= 1) {
      if (numbers & 1) state_ = state_ * factor + increment;
      increment *= factor + 1;
      factor *= factor;
    }
  }

  /// Uniform in [0, 1), a multiple of 2⁻²⁴.
  template <class Scalar = float>
  constexpr Scalar uniform() {
    return static_cast<Scalar>(next() >> 8) * Scalar(1.0f / 16777216.0f);
  }
  /// Uniform in [low, high]; only rounding reaches `high` itself. The result has the type of the bounds, or
  /// float if both are integers: uniform(-1, 1) is a float in [-1, 1), not an integer.
  template <class Scalar = void, class Low, class High>
  constexpr auto uniform(Low low, High high) {
    using Common = std::conditional_t<std::is_void_v<Scalar>, std::common_type_t<Low, High>, Scalar>;
    using Real = std::conditional_t<std::is_integral_v<Common>, float, Common>;
    const auto from = static_cast<Real>(low);
    return kernels::multiply_add(uniform<Real>(), static_cast<Real>(high) - from, from);
  }

  /// Normal with mean 0 and variance 1, by Marsaglia's polar method ("A Convenient Method for Generating
  /// Normal Variables", 1964). Drops the second number of each pair, so the generator needs no other state.
  template <class Scalar = float>
  Scalar normal() {
    for (;;) {
      const Scalar u = uniform<Scalar>(-1, 1);
      const Scalar v = uniform<Scalar>(-1, 1);
      const Scalar s = kernels::multiply_add(u, u, v * v);
      if (s > 0 && s < 1) return u * kernels::square_root(-2 * kernels::logarithm(s) / s);
    }
  }

 private:
  static constexpr std::uint64_t kFactor = 6364136223846793005u;
  static constexpr std::uint64_t kIncrement = 1442695040888963407u;
  std::uint64_t state_;
};

}  // namespace ATTUNE_NAMESPACE
