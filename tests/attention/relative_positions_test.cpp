// The pairs that share an entry of a table of biases. Values of the biases: vectors of PyTorch.
#include <attune/attention/relative_positions.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "check.hpp"

namespace {

using attune::RelativeBias;
using attune::RelativePositions;
using attune::detail::relative_entry;
using attune::detail::valid_relative_bias;

constexpr RelativeBias kDistance{.kind = RelativePositions::kDistance, .max_distance = 3};
constexpr RelativeBias kBuckets{.kind = RelativePositions::kBuckets};
constexpr RelativeBias kCausal{.kind = RelativePositions::kCausalBuckets};
constexpr RelativeBias kGrid{.kind = RelativePositions::kGrid, .rows = 2, .cols = 3};
constexpr RelativeBias kGridDistance{.kind = RelativePositions::kGridDistance, .rows = 2, .cols = 3};

}  // namespace

TEST(RelativePositions, distances_end_at_the_largest_one) {
  static_assert(kDistance.entries() == 7);
  for (int distance = -9; distance <= 9; ++distance) {
    EXPECT_EQ(relative_entry<kDistance>(20, 20 + distance), 3 + std::clamp(distance, -3, 3));
  }
}

// T5's defaults: the first distance of each bucket, in both directions.
TEST(RelativePositions, buckets_match_t5) {
  static_assert(kBuckets.entries() == 32 && kCausal.entries() == 32);
  constexpr std::array kTwoSided{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  constexpr std::array kOneSided{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
  const auto bucket = [](const auto& first, int distance) {
    int index = -1;
    for (const int each : first) index += distance >= each;
    return index;
  };
  for (int distance = 0; distance < 300; ++distance) {
    EXPECT_EQ(relative_entry<kBuckets>(distance, 0), bucket(kTwoSided, distance)) << distance;
    EXPECT_EQ(relative_entry<kBuckets>(0, distance), bucket(kTwoSided, distance) + (distance > 0 ? 16 : 0));
    EXPECT_EQ(relative_entry<kCausal>(distance, 0), bucket(kOneSided, distance)) << distance;
    EXPECT_EQ(relative_entry<kCausal>(0, distance), 0);
  }
}

TEST(RelativePositions, the_smallest_buckets_have_one_distance_each) {
  constexpr RelativeBias kFew{.kind = RelativePositions::kBuckets, .max_distance = 2, .buckets = 4};
  constexpr std::array kEntries{1, 1, 0, 3, 3};
  for (int key = 0; key < 5; ++key) EXPECT_EQ(relative_entry<kFew>(2, key), kEntries[std::size_t(key)]);
}

TEST(RelativePositions, offsets_on_a_grid_match_swin) {
  static_assert(kGrid.entries() == 3 * 5);
  for (int query = 0; query < 6; ++query) {
    for (int key = 0; key < 6; ++key) {
      const int dy = query / 3 - key / 3, dx = query % 3 - key % 3;
      EXPECT_EQ(relative_entry<kGrid>(query, key), (dy + 1) * 5 + dx + 2);
      EXPECT_EQ(relative_entry<kGridDistance>(query, key), (dy * dy) * 3 + (dx < 0 ? -dx : dx));
    }
  }
}

TEST(RelativePositions, tokens_before_a_grid_have_three_entries_as_in_beit) {
  constexpr RelativeBias kClass{.kind = RelativePositions::kGrid, .rows = 2, .cols = 3, .prefix = 1};
  static_assert(kClass.entries() == 3 * 5 + 3);
  for (int token = 1; token < 7; ++token) {
    EXPECT_EQ(relative_entry<kClass>(0, token), 15);
    EXPECT_EQ(relative_entry<kClass>(token, 0), 16);
    EXPECT_EQ(relative_entry<kClass>(token, 4), relative_entry<kGrid>(token - 1, 3));
  }
  EXPECT_EQ(relative_entry<kClass>(0, 0), 17);
}

TEST(RelativePositions, every_entry_is_one_of_the_table) {
  const auto expect = []<RelativeBias bias>(int tokens) {
    bool found[std::size_t{bias.entries()}] = {};
    for (int query = 0; query < tokens; ++query) {
      for (int key = 0; key < tokens; ++key) {
        const int entry = relative_entry<bias>(query, key);
        ASSERT_TRUE(entry >= 0 && entry < bias.entries());
        found[entry] = true;
      }
    }
    for (int entry = 0; entry < bias.entries(); ++entry) {
      const bool unused = bias.kind == RelativePositions::kBuckets && entry == bias.side();
      EXPECT_EQ(found[entry], !unused) << entry;
    }
  };
  expect.operator()<kDistance>(9);
  expect.operator()<kBuckets>(200);
  expect.operator()<kCausal>(200);
  expect.operator()<RelativeBias{RelativePositions::kCausalBuckets, 500, 7}>(600);
  expect.operator()<kGrid>(6);
  expect.operator()<kGridDistance>(6);
}

TEST(RelativePositions, sizes_fit_the_layer) {
  static_assert(valid_relative_bias({}, 3, 4, 5));
  static_assert(valid_relative_bias(kGrid, 6, 6, 0) && valid_relative_bias(kGrid, 2, 6, 4));
  static_assert(!valid_relative_bias(kGrid, 6, 7, 0) && !valid_relative_bias(kGrid, 6, 6, 1));
  static_assert(!valid_relative_bias({.kind = RelativePositions::kGrid, .rows = -2, .cols = -3}, 6, 6, 0));
  static_assert(
      !valid_relative_bias({.kind = RelativePositions::kGrid, .rows = 3, .cols = 3, .prefix = -3}, 6, 6, 0));
  static_assert(valid_relative_bias(kDistance, 6, 9, 70));
  static_assert(!valid_relative_bias({.kind = RelativePositions::kDistance, .max_distance = 0}, 6, 6, 0));
  const auto buckets = [](RelativePositions kind, int max_distance, int count) {
    return valid_relative_bias({.kind = kind, .max_distance = max_distance, .buckets = count}, 6, 6, 0);
  };
  EXPECT_TRUE(buckets(RelativePositions::kBuckets, 2, 4));
  EXPECT_TRUE(buckets(RelativePositions::kCausalBuckets, 2, 3));
  EXPECT_TRUE(buckets(RelativePositions::kCausalBuckets, 32768, 128));
  EXPECT_FALSE(buckets(RelativePositions::kBuckets, 128, 2));
  EXPECT_FALSE(buckets(RelativePositions::kBuckets, 128, 9));
  EXPECT_FALSE(buckets(RelativePositions::kBuckets, 8, 32));
  EXPECT_FALSE(buckets(RelativePositions::kCausalBuckets, 128, 1));
  EXPECT_FALSE(buckets(RelativePositions::kCausalBuckets, 128, 129));
  EXPECT_FALSE(buckets(RelativePositions::kCausalBuckets, 32769, 32));
}
