#include <attune/kernels/ops/packed_rows.hpp>

#include <cmath>
#include <limits>

#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16;
using attune::Int8;

constexpr int kMax = 37;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A row that was packed and unpacked.
struct Again {
  float values[kMax];

  explicit Again(const float* x, int length = kMax) {
    Int8 packed[kMax];
    const float scale = kernels::pack_row(length, x, packed);
    kernels::unpack_row(length, packed, scale, values);
  }
};
struct AgainIn16Bits {
  float values[kMax];

  explicit AgainIn16Bits(const float* x, int length = kMax) {
    Bfloat16 packed[kMax];
    kernels::pack_row(length, x, packed);
    kernels::unpack_row(length, packed, values);
  }
};

}  // namespace

TEST(PackedRows, are_within_half_a_step) {
  attune::Rng rng(1);
  for (int length = 1; length <= kMax; ++length) {
    float x[kMax], largest = 0;
    for (int i = 0; i < length; ++i) {
      x[i] = rng.uniform(-3, 3);
      largest = std::fmax(largest, std::fabs(x[i]));
    }
    const Again in_8(x, length);
    const AgainIn16Bits in_16(x, length);
    for (int i = 0; i < length; ++i) {
      EXPECT_NEAR(in_8.values[i], x[i], largest / 127 * 0.5001f);
      EXPECT_NEAR(in_16.values[i], x[i], std::fabs(x[i]) / 256);
    }
  }
}

TEST(PackedRows, round_ties_to_even) {
  const float x[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f};
  const float expected[] = {127, 0, 2, 2, 0, -2};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Again(x, 6).values[i], expected[i]);
  const float halves[] = {1 + 0x1p-8f, 1 + 0x3p-8f};
  EXPECT_EQ(AgainIn16Bits(halves, 2).values[0], 1.0f);
  EXPECT_EQ(AgainIn16Bits(halves, 2).values[1], 1 + 0x4p-8f);
}

TEST(PackedRows, of_zeros_stay_zeros) {
  const float zeros[kMax] = {};
  const float tiny[] = {0x1p-101f, -std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < kMax; ++i) EXPECT_EQ(Again(zeros).values[i], 0.0f);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Again(tiny, 2).values[i], 0.0f);
}

TEST(PackedRows, stay_not_finite) {
  for (const float bad :
       {kInfinity, -kInfinity, kNan, std::bit_cast<float>(0x7FFFFFFFu), std::bit_cast<float>(0xFF800001u)}) {
    const float x[] = {1, bad, -2};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(Again(x, 3).values[i]));
    const AgainIn16Bits in_16(x, 3);
    EXPECT_EQ(in_16.values[0], 1.0f);
    EXPECT_FALSE(std::isfinite(in_16.values[1]));
    EXPECT_EQ(in_16.values[2], -2.0f);
  }
  const float most[] = {0x1p127f, -0x1p127f};
  EXPECT_TRUE(std::isfinite(Again(most, 2).values[0]));
}

TEST(PackedRows, do_not_change_when_packed_again) {
  attune::Rng rng(2);
  float x[kMax];
  for (float& value : x) value = rng.uniform(-1, 1);
  const AgainIn16Bits once(x), twice(once.values);
  EXPECT_TRUE(check::same_bits(once, twice));
}

TEST(PackedRows, have_the_same_bits_everywhere) {
  attune::Rng rng(3);
  std::uint32_t hash = 2166136261u;
  for (int row = 0; row < 64; ++row) {
    float x[kMax];
    for (float& value : x) value = rng.uniform(-1, 1) * static_cast<float>(1 << row % 20);
    const Again in_8(x);
    for (const float value : in_8.values) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 16777619u;
  }
  EXPECT_EQ(hash, 3148001141u);
}
