// Every conversion to fewer bits at its extremes: NaN, infinity, the largest and smallest numbers, zeros of
// both signs, halves of a unit and what is beside them, and the largest and smallest dither.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <attune/kernels/ops/bfloat16_weights.hpp>
#include <attune/kernels/ops/int8_moments.hpp>
#include <attune/kernels/ops/int8_products.hpp>
#include <attune/kernels/ops/packed_rows.hpp>
#include <attune/kernels/ops/quantize_columns.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16, attune::Float16, attune::Int8;

constexpr float kMax = std::numeric_limits<float>::max(), kMin = std::numeric_limits<float>::min();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every number is tried with both signs, and with its two neighbors.
constexpr float kNumbers[] = {0.0f,        kTiny,       kMin,    0x1p-101f, 0x1p-100f, 0.5f,
                              1.0f,        1.5f,        63.5f,   126.5f,    127.0f,    127.5f,
                              254.5f,      255.0f,      65504.f, 65520.0f,  kMax,      0x1.FEp127f,
                              0x1.FFp127f, 1.00390625f, 0x1p63f, 0x1p-24f,  0x1p-25f,  0x1p-14f};
constexpr std::uint32_t kNaNs[] = {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu};
constexpr std::uint32_t kDithers[] = {0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF};

template <class Body>
void for_each_extreme(const Body& body) {
  const auto both_signs = [&](std::uint32_t bits) {
    body(std::bit_cast<float>(bits));
    body(std::bit_cast<float>(bits | 0x80000000u));
  };
  for (const float number : kNumbers) {
    const auto bits = std::bit_cast<std::uint32_t>(number);
    both_signs(bits);
    both_signs(bits + 1);
    if (bits > 0) both_signs(bits - 1);
  }
  for (const std::uint32_t nan : kNaNs) both_signs(nan);
}

bool negative(float x) { return std::bit_cast<std::uint32_t>(x) >> 31 != 0; }

// A conversion of one number, whose result is a float again.
struct Conversion {
  const char* name;
  float (*result)(float x, std::uint32_t dither);
  float largest;   // the largest result
  bool saturates;  // what is finite stays finite
};
constexpr Conversion kConversions[] = {
    {"moments of 16 bits",
     [](float x, std::uint32_t dither) {
       std::uint16_t to;
       kernels::detail::store_moments(&to, x, &dither, 0);
       return attune::dequantize_bf16(to);
     },
     0x1.FEp127f, true},
    {"weights in bf16",
     [](float x, std::uint32_t dither) { return attune::dequantize(kernels::stochastic_bf16(x, dither)); },
     0x1.FEp127f, true},
    {"bf16", [](float x, std::uint32_t) { return attune::dequantize(attune::round_to_bf16(x)); }, 0x1.FEp127f,
     false},
    {"bf16 of a double",
     [](float x, std::uint32_t) {
       return attune::dequantize(attune::detail::narrow<Bfloat16, double>(double{x}, 1));
     },
     0x1.FEp127f, false},
    {"fp16", [](float x, std::uint32_t) { return attune::dequantize(attune::round_to_f16(x)); }, 65504.0f,
     false},
};

// One block of moments, whose first number is the largest.
struct Block {
  static constexpr int kSize = kernels::kMomentBlock;
  std::array<std::uint8_t, kSize> codes{};
  float scale = 0;

  template <bool kRoots, class Rounding>
  void store(const std::array<float, kSize>& values, const Rounding& rounding) {
    kernels::detail::MomentsOfBlock block;
    for (int i = 0; i < kSize; ++i) block.set(i, values[static_cast<std::size_t>(i)]);
    kernels::detail::store_block<kRoots>(kSize, block, {codes.data(), &scale, 0}, rounding);
  }
};

// The bits of a dither for which the first of 64 positions gets the largest, found once.
kernels::PositionBits bits_with(std::uint32_t top, int shift) {
  for (std::uint64_t key = 1;; ++key) {
    if ((kernels::PositionBits{key}.at(0) >> shift & 0xFFFFu) == top) return {key};
  }
}

}  // namespace

TEST(Extremes, of_floats_keep_their_sign_and_kind_in_sixteen_bits) {
  for (const Conversion& conversion : kConversions) {
    SCOPED_TRACE(conversion.name);
    for_each_extreme([&](float x) {
      for (const std::uint32_t dither : kDithers) {
        const float y = conversion.result(x, dither);
        if (check::is_nan(x)) {
          EXPECT_TRUE(check::is_nan(y));
          continue;
        }
        EXPECT_EQ(negative(y), negative(x));
        EXPECT_TRUE(x != 0 || y == 0);
        EXPECT_TRUE(std::fabs(x) != kInfinity || y == x);
        const bool stays = std::fabs(x) <= (conversion.saturates ? kMax : conversion.largest);
        EXPECT_TRUE(!stays || std::fabs(y) <= conversion.largest);
      }
    });
  }
}

TEST(Extremes, of_doubles_are_rounded_once) {
  // A double just beside the middle of two results, which a float would round onto the middle.
  const auto bf16 = [](double x) { return attune::detail::narrow<Bfloat16, double>(x, 1).bits; };
  const auto f16 = [](double x) { return attune::detail::narrow<Float16, double>(x, 1).bits; };
  EXPECT_EQ(bf16(1 + 0x1p-8), 0x3F80);
  EXPECT_EQ(bf16(1 + 0x1p-8 + 0x1p-40), 0x3F81);
  EXPECT_EQ(bf16(-1 - 0x1p-8 - 0x1p-40), 0xBF81);
  EXPECT_EQ(bf16(1 + 0x3p-8 - 0x1p-40), 0x3F81);
  EXPECT_EQ(f16(1 + 0x1p-11 + 0x1p-40), 0x3C01);
  EXPECT_EQ(f16(1 + 0x3p-11 - 0x1p-40), 0x3C01);
  EXPECT_EQ(f16(0x1p-25 + 0x1p-70), 0x0001);
  EXPECT_EQ(f16(65520 - 0x1p-30), 0x7BFF);
  EXPECT_EQ(bf16(0x1.FFp127 - 0x1p80), 0x7F7F);
  EXPECT_EQ(bf16(1e300), 0x7F80);
  EXPECT_EQ(bf16(-1e300), 0xFF80);
  EXPECT_EQ(bf16(-1e-300), 0x8000);
  Bfloat16 element;
  element = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(element.bits, 0x3F81);
  element = 0x1010001;  // an integer of 25 bits, above the middle
  EXPECT_EQ(element.bits, 0x4B81);
}

TEST(Extremes, of_eight_bit_integers_stay_within_127) {
  for_each_extreme([&](float x) {
    for (const float scale : {0.0f, kTiny, 1.0f, 0.5f, kMax / 127, kInfinity, std::fabs(x) / 127}) {
      const int q = attune::quantize_int8(x, scale).value;
      EXPECT_TRUE(q >= -127 && q <= 127);
      EXPECT_TRUE(q == 0 || (q < 0) == negative(x));
      EXPECT_TRUE(q == 0 || (!check::is_nan(x) && scale != 0));
    }
    EXPECT_EQ(attune::quantize_int8(x, std::numeric_limits<float>::quiet_NaN()).value, 0);
  });
}

TEST(Extremes, of_moments_never_change_their_sign) {
  const auto top = bits_with(0xFFFF, 0), bottom = bits_with(0, 0);
  const auto top_root = bits_with(0xFFFF, 16);
  attune::Rng rng(9);
  std::array<float, Block::kSize> values{};
  const auto try_largest = [&](float largest) {
    values[0] = largest;
    for (std::size_t i = 1; i < values.size(); ++i) values[i] = largest * rng.uniform(-1.0f, 1.0f);
    Block block;
    const auto code = [&](std::size_t i) { return static_cast<std::int8_t>(block.codes[i]); };
    const auto expect_signs = [&] {
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(code(i) >= -127);
        EXPECT_TRUE(std::abs(code(i)) <= 1 || (code(i) < 0) == (values[i] < 0));
      }
      EXPECT_EQ(code(0), largest < 0 ? -127 : 127);
    };
    block.store<false>(values, kernels::RoundToNearest{});
    expect_signs();
    for (const auto& bits : {top, bottom}) {
      block.store<false>(values, bits);
      for (std::size_t i = 1; i < values.size(); ++i) EXPECT_TRUE(code(i) >= -127);
      EXPECT_TRUE(std::abs(code(0)) >= 126 && (code(0) < 0) == (largest < 0));
    }
    for (float& value : values) value = std::fabs(value);
    block.store<true>(values, top_root);
    EXPECT_EQ(block.codes[0], 255);
    for (const std::uint8_t root : block.codes) EXPECT_GE(root, 1);
  };
  for (int time = 0; time < 2000; ++time) {
    const float largest = rng.uniform(0.5f, 2.0f);
    try_largest(largest);
    try_largest(-largest);
  }
  for (const float largest : {0x1p-100f, 0x1p63f, 0x1p87f, kMax, 127.0f}) {
    try_largest(largest);
    try_largest(-largest);
  }
}

TEST(Extremes, of_rows_have_the_same_integers_in_every_kernel) {
  // Rows of a matrix in integers, by the kernels of this target, and by plain loops.
  constexpr int kLength = 37;
  const auto expect_same = [](const std::array<float, kLength>& row) {
    std::array<std::int8_t, kLength> plain;
    std::array<Int8, kLength> packed;
    const auto at = [&](int i) { return row[static_cast<std::size_t>(i)]; };
    const float scale = kernels::quantize_row(kLength, at, plain.data());
    const float packed_scale = kernels::pack_row(kLength, row.data(), packed.data());
    const kernels::RowScale of_kernel = kernels::detail::row_scale_of(row.data(), kLength);
    if (check::is_nan(scale)) {  // and so is everything that is computed from the row
      EXPECT_TRUE(check::is_nan(packed_scale) && check::is_nan(of_kernel.scale));
      return;
    }
    EXPECT_EQ(packed_scale, scale);
    EXPECT_EQ(of_kernel.scale, scale);
    for (std::size_t i = 0; i < kLength; ++i) {
      EXPECT_TRUE(plain[i] >= -127);
      EXPECT_EQ(packed[i].value, plain[i]);
      EXPECT_TRUE(plain[i] == 0 || (plain[i] < 0) == negative(row[i]));
    }
    // A product with a matrix of ones: the sum of the integers.
    attune::Tensor<float, 1, kLength> a;
    attune::Tensor<float, kLength, 4> ones;
    attune::Tensor<float, 1, 4> c;
    for (int i = 0; i < kLength; ++i) {
      a(0, i) = at(i);
      for (int j = 0; j < 4; ++j) ones(i, j) = 127;
    }
    kernels::Int8Products::gemm(attune::view(a), attune::view(ones), attune::view(c));
    int sum = 0;
    for (const std::int8_t q : plain) sum += q;
    for (const float element : c.values) EXPECT_EQ(element, static_cast<float>(127 * sum) * scale);
  };
  std::array<float, kLength> row{};
  for_each_extreme([&](float x) {
    for (const int at : {0, 8, 31, 32, 36}) {
      for (const float others : {0.0f, -0.0f, x / 127, x / 254, x * (126.5f / 127), -x, kTiny}) {
        row.fill(others);
        row[static_cast<std::size_t>(at)] = x;
        expect_same(row);
      }
    }
  });
  for (std::size_t i = 0; i < kLength; ++i) row[i] = static_cast<float>(i) - 18.5f;  // ties, of scale 1
  row[36] = 127;
  expect_same(row);
}
