// Weights in bf16: an optimizer's update in floats, then stochastic rounding.
//
// The probability of rounding up equals the fraction that rounding down would cut off. Most steps change a
// weight by less than one unit in the last of its 8 bits; rounded to nearest, they would all be lost.
#pragma once

#include <bit>
#include <cstdint>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/bfloat16_moments.hpp>
#include <attune/kernels/ops/squares.hpp>
#include <attune/kernels/quantized.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// The number of weights that are floats at one time, on the stack.
inline constexpr int kBfloat16Block = 64;

/// Consecutive weights, the number of weights in the set before them, and the random bits of a step.
struct Bfloat16Parameters {
  Bfloat16* values;
  std::uint32_t position;
  PositionBits bits;

  [[nodiscard]] float operator[](int i) const { return values[i]; }
  friend Bfloat16Parameters operator+(const Bfloat16Parameters& weights, int count) {
    return {weights.values + count, weights.position + static_cast<std::uint32_t>(count), weights.bits};
  }
};

namespace detail {

// Calls body(first, count, floats) for blocks of at most kBfloat16Block weights.
template <class Body>
ATTUNE_INLINE void for_each_bfloat16_block(const Bfloat16* values, int size, const Body& body) {
  float block[kBfloat16Block];
  for (int first = 0; first < size; first += kBfloat16Block) {
    const int count = smaller(kBfloat16Block, size - first);
    for (int i = 0; i < count; ++i) block[i] = values[first + i];
    body(first, count, static_cast<float*>(block));
  }
}

}  // namespace detail

/// Calls update(first, count, floats) for blocks of `size` parameters, from parameter `first` on, and rounds
/// what it leaves in `floats`.
template <class Update>
ATTUNE_INLINE void update_parameters(const Bfloat16Parameters& weights, int size, const Update& update) {
  detail::for_each_bfloat16_block(weights.values, size, [&](int first, int count, float* block) {
    update(first, count, block);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t position = weights.position + static_cast<std::uint32_t>(first + i);
      weights.values[first + i] = stochastic_bf16(block[i], weights.bits.at(position) >> 16);
    }
  });
}
/// The same for floats: all at once, in place.
template <class Scalar, class Update>
ATTUNE_INLINE void update_parameters(Scalar* parameters, int size, const Update& update) {
  update(0, size, parameters);
}

/// Σp² of `size` parameters.
[[nodiscard]] inline float sum_of_squares(int size, const Bfloat16Parameters& weights) {
  float sum = 0;
  detail::for_each_bfloat16_block(weights.values, size, [&](int, int count, const float* block) {
    sum = add(sum, sum_of_squares(count, block));
  });
  return sum;
}

}  // namespace ATTUNE_NAMESPACE::kernels
