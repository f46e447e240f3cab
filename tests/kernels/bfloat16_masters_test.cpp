#include <attune/kernels/ops/bfloat16_masters.hpp>

#include <bit>
#include <limits>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16;

std::uint16_t rounded(float value, std::uint32_t random) {
  return kernels::stochastic_bf16(value, random).bits;
}

}  // namespace

TEST(Bfloat16Masters, are_rounded_to_one_of_two_neighbors) {
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

TEST(Bfloat16Masters, keep_what_has_sixteen_bits_and_what_is_not_finite) {
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

TEST(Bfloat16Masters, small_changes_arrive_and_parts_change_no_bit) {
  constexpr int kSize = 150;  // two blocks and a part of one
  Bfloat16 whole[kSize], parts[kSize];
  for (int i = 0; i < kSize; ++i) whole[i] = parts[i] = 1;
  constexpr int kSteps = 1000;
  constexpr float kStep = 0x1p-12f;  // a 32nd of the last bit
  const auto grow = [](int, int count, float* floats) {
    for (int i = 0; i < count; ++i) floats[i] += kStep;
  };
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const kernels::PositionBits bits{step * 0x9E3779B97F4A7C15u};
    kernels::update_parameters(kernels::Bfloat16Masters{whole, 0, bits}, kSize, grow);
    for (int first = 0; first < kSize; first += 7) {
      kernels::update_parameters(kernels::Bfloat16Masters{parts, 0, bits} + first, std::min(7, kSize - first),
                                 grow);
    }
  }
  float mean = 0;
  for (int i = 0; i < kSize; ++i) {
    EXPECT_EQ(whole[i].bits, parts[i].bits);
    mean += whole[i] / kSize;
  }
  EXPECT_NEAR(mean, 1 + kSteps * kStep, 0.01f);  // to the nearest, it would stay 1
  EXPECT_NEAR(kernels::sum_of_squares(kSize, kernels::Bfloat16Masters{whole, 0, {}}), kSize * mean * mean,
              1.0f);
}
