#include <algorithm>

#include <attune/kernels/ops/bfloat16_weights.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16;

}  // namespace

TEST(Bfloat16Parameters, small_changes_arrive_and_parts_change_no_bit) {
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
    kernels::update_parameters(kernels::Bfloat16Parameters{whole, 0, bits}, kSize, grow);
    for (int first = 0; first < kSize; first += 7) {
      kernels::update_parameters(kernels::Bfloat16Parameters{parts, 0, bits} + first,
                                 std::min(7, kSize - first), grow);
    }
  }
  float mean = 0;
  for (int i = 0; i < kSize; ++i) {
    EXPECT_EQ(whole[i].bits, parts[i].bits);
    mean += whole[i] / kSize;
  }
  EXPECT_NEAR(mean, 1 + kSteps * kStep, 0.01f);  // to the nearest, it would stay 1
  EXPECT_NEAR(kernels::sum_of_squares(kSize, kernels::Bfloat16Parameters{whole, 0, {}}), kSize * mean * mean,
              1.0f);
}
