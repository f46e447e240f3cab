#include <attune/attention/alibi.hpp>

#include "check.hpp"

namespace {

using attune::alibi_slope;
using attune::AlibiBias;

static_assert(attune::AttentionMask<AlibiBias<4>>);

}  // namespace

TEST(AlibiBias, slopes_are_powers_of_two_for_powers_of_two) {
  double expected = 1;
  for (int head = 0; head < 8; ++head) EXPECT_NEAR(alibi_slope(head, 8), expected /= 2, 1e-15);
  EXPECT_NEAR(alibi_slope(0, 1), 0x1p-8, 1e-17);
  EXPECT_NEAR(alibi_slope(0, 16), 0.70710678118654752, 1e-15);
}

// The list that the paper's code makes of other numbers: those of 4 heads, then the first, third, … of 8.
TEST(AlibiBias, slopes_of_other_numbers_continue_with_every_other_one_of_the_next_power) {
  const double expected[] = {0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3};
  for (int head = 0; head < 6; ++head) EXPECT_NEAR(alibi_slope(head, 6), expected[head], 1e-15);
}

TEST(AlibiBias, takes_slope_times_distance_from_scores) {
  const AlibiBias<2> bias{.offset = 3};
  for (int head = 0; head < 2; ++head) {
    attune::Tensor<float, 1, 7> row;
    for (float& score : row.values) score = 1;
    bias.hide<7>(head, 1, row.data());
    bias.bias<7>(head, 1, row.data());
    const float slope = head == 0 ? 0x1p-4f : 0x1p-8f;
    for (int key = 0; key < 7; ++key) {
      EXPECT_EQ(row.values[key], 1 - slope * static_cast<float>(key < 4 ? 4 - key : key - 4));
    }
  }
}

TEST(AlibiBias, leaves_hidden_keys_hidden) {
  const auto mask = attune::CausalMask{} && AlibiBias<1>{};
  attune::Tensor<double, 1, 4> row{};
  row.values[3] = check::kNan<double>;
  mask.hide<4>(0, 2, row.data());
  mask.bias<4>(0, 2, row.data());
  EXPECT_EQ(row.values[2], 0.0);
  EXPECT_EQ(row.values[1], -0x1p-8);
  EXPECT_EQ(row.values[3], -check::kInfinity<double>);
}
