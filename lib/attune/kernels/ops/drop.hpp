// Dropout's mask, drawn and applied in one pass. A generator returns uniform 32-bit numbers from next(), and
// skips some with skip(count).
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/kernels/simd/lanes.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// y = m ∘ x · scale. The mask m takes one draw of `rng` per element, and drops an element if the draw is
/// below `threshold`. `y` may be `x`.
template <class Rng, class Scalar>
[[gnu::noinline]] void drop(int size, Rng& rng, std::uint32_t threshold, Scalar scale, const Scalar* x,
                            Scalar* y) {
  for (int i = 0; i < size; ++i) {
    const bool dropped = rng.next() < threshold;
    y[i] = dropped ? Scalar(0) : multiply(x[i], scale);
  }
}

/// A generator for each lane.
template <class Rng, int lanes>
struct LaneDraws {
  Rng of[std::size_t{lanes}];

  constexpr void skip(std::uint64_t draws) {
    for (Rng& rng : of) rng.skip(draws);
  }
};
/// The same in every lane, each with its own generator.
template <class Rng, class Scalar, int lanes>
[[gnu::noinline]] void drop(int size, LaneDraws<Rng, lanes>& draws, std::uint32_t threshold,
                            LanesOf<Scalar, lanes> scale, const LanesOf<Scalar, lanes>* x,
                            LanesOf<Scalar, lanes>* y) {
  for (int i = 0; i < size; ++i) {
    LanesOf<Scalar, lanes> value = x[i] * scale;
    auto* of_lane = reinterpret_cast<Scalar*>(&value);
    for (Rng& rng : draws.of) {
      if (rng.next() < threshold) *of_lane = 0;
      ++of_lane;
    }
    y[i] = value;
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
