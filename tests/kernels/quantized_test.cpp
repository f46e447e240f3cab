// Numbers of fewer bits: each is a float exactly, and rounding is to the nearest, ties to even.
#include <attune/kernels/quantized.hpp>

#include <initializer_list>

#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

using attune::Bfloat16, attune::Float16, attune::Int8;

// Between a 16-bit float and the next larger one: the middle is the even one's, and what is beside it the
// nearer one's.
template <class Element, class Narrow>
void expect_rounding_between(std::uint16_t bits, const Narrow& narrow) {
  const auto next = static_cast<std::uint16_t>(bits + 1);
  const float low = attune::dequantize(Element{bits}), high = attune::dequantize(Element{next});
  const float middle = low + (high - low) / 2;  // exact: both have fewer bits
  ASSERT_EQ(narrow(low).bits, bits);
  ASSERT_EQ(narrow(middle).bits, bits % 2 == 0 ? bits : next);
  const auto middle_bits = std::bit_cast<std::uint32_t>(middle);
  ASSERT_EQ(narrow(std::bit_cast<float>(middle_bits - 1)).bits, bits);
  ASSERT_EQ(narrow(std::bit_cast<float>(middle_bits + 1)).bits, next);
  ASSERT_EQ(narrow(-middle).bits, (bits % 2 == 0 ? bits : next) | 0x8000);
}

}  // namespace

TEST(Quantize, binary16_rounds_to_the_nearest) {
  for (int bits = 0; bits < 0x7BFF; ++bits) {
    expect_rounding_between<Float16>(static_cast<std::uint16_t>(bits), attune::round_to_f16);
  }
}

TEST(Quantize, bfloat16_rounds_to_the_nearest) {
  for (int bits = 0x80; bits < 0x7F7F; ++bits) {  // normal ones
    expect_rounding_between<Bfloat16>(static_cast<std::uint16_t>(bits), attune::round_to_bf16);
  }
}

TEST(Quantize, floats_that_are_too_large_become_infinite) {
  EXPECT_EQ(attune::round_to_f16(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(attune::round_to_f16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(attune::round_to_f16(-1e30f).bits, 0xFC00);
  EXPECT_EQ(attune::round_to_f16(check::kInfinity<float>).bits, 0x7C00);
  EXPECT_EQ(attune::round_to_bf16(3.40282347e38f).bits, 0x7F80);
  EXPECT_EQ(attune::round_to_bf16(-check::kInfinity<float>).bits, 0xFF80);
}

TEST(Quantize, a_nan_stays_one) {
  for (const std::uint32_t bits : {0x7F800001u, 0xFFC00000u, 0x7FFFFFFFu}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(check::is_nan(attune::dequantize(attune::round_to_f16(nan))));
    EXPECT_TRUE(check::is_nan(attune::dequantize(attune::round_to_bf16(nan))));
  }
}

TEST(Quantize, integers_are_the_nearest_multiples_of_a_scale) {
  attune::Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const double largest = rng.uniform(0.01, 3.0), value = rng.uniform(-largest, largest);
    const double scale = attune::int8_scale(largest);
    const double error = value - scale * attune::quantize_int8(value, scale).value;
    ASSERT_TRUE((error < 0 ? -error : error) <= scale * 0.5000001);
    ASSERT_EQ(attune::quantize_int8(largest, scale).value, 127);
    ASSERT_EQ(attune::quantize_int8(-largest, scale).value, -127);
  }
  // Ties.
  EXPECT_EQ(attune::quantize_int8(2.5f, 1.0f).value, 2);
  EXPECT_EQ(attune::quantize_int8(3.5f, 1.0f).value, 4);
  EXPECT_EQ(attune::quantize_int8(-0.5f, 1.0f).value, 0);
  EXPECT_EQ(attune::quantize_int8(-1.5f, 1.0f).value, -2);
}

TEST(Quantize, integers_of_the_smallest_numbers_are_in_range) {
  EXPECT_EQ(attune::int8_scale(0.0f), 0.0f);
  EXPECT_EQ(attune::quantize_int8(0.0f, 0.0f).value, 0);
  constexpr float kMin = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(attune::quantize_int8(kMin, attune::int8_scale(kMin)).value, 0);  // its scale is 0
  EXPECT_EQ(attune::quantize_int8(190 * kMin, attune::int8_scale(190 * kMin)).value, 127);
}
