#include <attune/kernels/ops/bfloat16_moments.hpp>

#include <array>
#include <bit>
#include <limits>

#include <attune/core/rng.hpp>

#include "check.hpp"
#include "kernels/adam_coefficients.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kAdam;

std::uint16_t rounded(float value, std::uint32_t random) {
  return kernels::stochastic_bf16(value, random).bits;
}

constexpr int kSize = 37;  // packets of every width, and scalars

struct State {
  std::array<float, kSize> parameters;
  std::array<std::uint16_t, kSize> first, second;
  bool operator==(const State&) const = default;

  explicit State(attune::Rng rng) : first{}, second{} {
    for (float& p : parameters) p = rng.uniform(-1.0f, 1.0f);
  }
  // Those from `from` on.
  void adam(int from, int count, const float* gradients, std::uint64_t key) {
    const auto position = static_cast<std::uint32_t>(from);
    kernels::adam_update<false, false>(count, parameters.data() + from, gradients + from,
                                       {first.data() + from, position}, {second.data() + from, position},
                                       kAdam, {key});
  }
  void sgd(int from, int count, const float* gradients, std::uint64_t key) {
    constexpr kernels::SgdCoefficients<float> kSgd{
        .learning_rate = 0.1f, .momentum = 0.9f, .intake = 1, .l2 = 0.01f, .gradient_scale = 1};
    kernels::sgd_update<true>(count, parameters.data() + from, gradients + from,
                              {first.data() + from, static_cast<std::uint32_t>(from)}, kSgd, {key});
  }
};

}  // namespace

TEST(StochasticBfloat16, is_one_of_two_neighbors) {
  for (const float sign : {1.0f, -1.0f}) {
    const float x = sign * (1.00390625f + 0x1p-10f);  // five eighths of the way from 1 to 1 + 2⁻⁷
    const std::uint16_t one = sign > 0 ? 0x3F80 : 0xBF80;
    int up = 0;
    for (std::uint32_t random = 0; random < 0x10000; ++random) {
      const std::uint16_t bits = rounded(x, random);
      EXPECT_TRUE(bits == one || bits == one + 1);
      up += bits - one;
    }
    EXPECT_EQ(up, 0x10000 * 5 / 8);
  }
}

TEST(StochasticBfloat16, keeps_exact_and_nonfinite_values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::uint32_t random : {0u, 1u, 0x8000u, 0xFFFFu}) {
    for (const float x :
         {0.0f, -0.0f, 1.0f, -1.0078125f, 0x1p-120f, -0x1p100f, 0x1.FEp127f, kInfinity, -kInfinity}) {
      EXPECT_EQ(rounded(x, random), std::bit_cast<std::uint32_t>(x) >> 16);
    }
    // Neither the largest floats nor NaNs carry into another number.
    EXPECT_EQ(rounded(std::numeric_limits<float>::max(), random), 0x7F7F);
    EXPECT_EQ(rounded(-std::numeric_limits<float>::max(), random), 0xFF7F);
    for (const std::uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFF80FFFFu, 0xFFFFFFFFu, 0x7FC00000u}) {
      const auto nan = attune::dequantize_bf16(rounded(std::bit_cast<float>(bits), random));
      EXPECT_NE(nan, nan);
    }
    // The smallest numbers stay small.
    EXPECT_LE(rounded(std::numeric_limits<float>::denorm_min(), random), 1);
  }
}

TEST(Bfloat16Moments, random_bits_are_uniform_and_differ_between_steps) {
  constexpr int kCount = 1 << 14;
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{0x123456789ABCDEF0}}) {
    int ones[32] = {}, equal = 0;
    for (std::uint32_t position = 0; position < kCount; ++position) {
      const std::uint32_t bits = kernels::PositionBits{key}.at(position);
      for (int bit = 0; bit < 32; ++bit) ones[bit] += static_cast<int>(bits >> bit & 1);
      equal += (bits & 0xFF) == (kernels::PositionBits{key + 1}.at(position) & 0xFF) ? 1 : 0;
    }
    // Six standard deviations: √(n/4) = 64, and √(n/256) = 8.
    for (const int count : ones) EXPECT_NEAR(count, kCount / 2, 6 * 64);
    EXPECT_NEAR(equal, kCount / 256, 6 * 8);
  }
}

TEST(Bfloat16Moments, neither_packets_nor_parts_change_a_bit) {
  State whole(attune::Rng{1}), parts(attune::Rng{1}), sgd_whole(attune::Rng{1}), sgd_parts(attune::Rng{1});
  attune::Rng rng(2);
  for (std::uint64_t key = 0; key < 20; ++key) {
    float gradients[kSize];
    for (float& g : gradients) g = rng.uniform(-1.0f, 1.0f);
    whole.adam(0, kSize, gradients, key);
    sgd_whole.sgd(0, kSize, gradients, key);
    for (int i = 0; i < kSize; ++i) {
      parts.adam(i, 1, gradients, key);
      sgd_parts.sgd(i, 1, gradients, key);
    }
  }
  EXPECT_TRUE(whole == parts);
  EXPECT_TRUE(sgd_whole == sgd_parts);
}

TEST(Bfloat16Moments, first_step_is_that_of_moments_in_full) {
  State rounded(attune::Rng{1});
  std::array<float, kSize> parameters = rounded.parameters, gradients, first{}, second{};
  attune::Rng rng(2);
  for (float& g : gradients) g = rng.uniform(-1.0f, 1.0f);
  kernels::adam_update<false, false>(kSize, parameters.data(), gradients.data(), first.data(), second.data(),
                                     kAdam);
  rounded.adam(0, kSize, gradients.data(), 5);
  EXPECT_EQ(rounded.parameters, parameters);
  for (std::size_t i = 0; i < kSize; ++i) {
    // Less than a unit in the last of 8 bits.
    const float m = std::bit_cast<float>(std::uint32_t{rounded.first[i]} << 16);
    const float v = std::bit_cast<float>(std::uint32_t{rounded.second[i]} << 16);
    EXPECT_LT(kernels::magnitude(m - first[i]), 0x1p-7f * kernels::magnitude(first[i]));
    EXPECT_LT(kernels::magnitude(v - second[i]), 0x1p-7f * second[i]);
  }
}

TEST(Bfloat16Moments, small_changes_arrive) {
  // v goes to g² in steps of 0.1 % of what is left: to the nearest of 8 bits it would stop at a third.
  State state(attune::Rng{1});
  std::array<float, kSize> gradients;
  gradients.fill(0.75f);
  for (std::uint64_t step = 0; step < 8000; ++step)
    state.adam(0, kSize, gradients.data(), attune::detail::mix(step));
  float mean = 0;
  for (const std::uint16_t bits : state.second)
    mean += std::bit_cast<float>(std::uint32_t{bits} << 16) / kSize;
  EXPECT_NEAR(mean, 0.5625f, 0.02f * 0.5625f);
}
