#include <attune/exchange/element_type.hpp>

#include "check.hpp"

namespace {

// What IEEE 754 says that a 16-bit float with such a number of bits of fraction is, as a float's bits.
std::uint32_t bits_by_formula(std::uint32_t bits, int fraction_bits) {
  const int bias = (1 << (14 - fraction_bits)) - 1;
  const int exponent = static_cast<int>(bits & 0x7FFF) >> fraction_bits;
  const auto fraction = static_cast<int>(bits & ((1u << fraction_bits) - 1));
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1) {
    if (fraction != 0) return 0x7F800001u;  // a NaN: any
    return std::bit_cast<std::uint32_t>(static_cast<float>(sign) * check::kInfinity<float>);
  }
  double value = sign * (exponent == 0 ? fraction : fraction + (1 << fraction_bits));
  for (int power = (exponent == 0 ? 1 : exponent) - bias - fraction_bits; power != 0;) {
    value *= power > 0 ? 2 : 0.5;
    power += power > 0 ? -1 : 1;
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

template <class Widen>
void expect_all_exact(const Widen& dequantize, int fraction_bits) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto widened = std::bit_cast<std::uint32_t>(dequantize(static_cast<std::uint16_t>(bits)));
    const std::uint32_t expected = bits_by_formula(bits, fraction_bits);
    const bool nan = expected == 0x7F800001u;
    wrong += nan ? (widened & 0x7FFFFFFFu) <= 0x7F800000u : widened != expected;
  }
  EXPECT_EQ(wrong, 0);
}

static_assert(attune::dequantize_f16(0x3C00) == 1.0f && attune::dequantize_f16(0xC000) == -2.0f);
static_assert(attune::dequantize_f16(0x0001) == 0x1p-24f && attune::dequantize_f16(0x7BFF) == 65504.0f);
static_assert(attune::dequantize_bf16(0x3F80) == 1.0f && attune::dequantize_bf16(0x0001) == 0x1p-133f);

}  // namespace

TEST(ElementType, half_precision_is_widened_exactly) { expect_all_exact(attune::dequantize_f16, 10); }
TEST(ElementType, bfloat16_is_widened_exactly) { expect_all_exact(attune::dequantize_bf16, 7); }

TEST(ElementType, numbers_are_little_endian) {
  constexpr char kBytes[8] = {0, 0, 0, 0, 0, 0, '\xF8', '\x3F'};
  static_assert(attune::detail::element<double>(attune::ElementType::kF64, kBytes) == 1.5);
  EXPECT_EQ(attune::detail::element<float>(attune::ElementType::kF64, kBytes), 1.5f);
  constexpr char kFloat[4] = {0, 0, '\x20', '\xC0'};
  EXPECT_EQ(attune::detail::element<float>(attune::ElementType::kF32, kFloat), -2.5f);
  EXPECT_EQ(attune::detail::element<double>(attune::ElementType::kF32, kFloat), -2.5);
  EXPECT_EQ(attune::detail::element<float>(attune::ElementType::kBF16, kFloat + 2), -2.5f);
  constexpr char kHalf[2] = {0, '\xC1'};
  EXPECT_EQ(attune::detail::element<float>(attune::ElementType::kF16, kHalf), -2.5f);
}
