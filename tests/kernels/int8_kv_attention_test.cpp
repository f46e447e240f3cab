// Scores and sums of a cache in 8 bits against plain loops.
#include <attune/kernels/ops/int8_kv_attention.hpp>

#include <array>
#include <cmath>

#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

template <std::size_t size>
void draw(std::array<std::int8_t, size>& integers, attune::Rng& rng) {
  for (std::int8_t& integer : integers) integer = static_cast<std::int8_t>(rng.uniform(-127.9f, 127.9f));
}
template <std::size_t size>
void draw(std::array<float, size>& numbers, attune::Rng& rng) {
  for (float& number : numbers) number = rng.uniform(0.0f, 1.0f);
}

void draw_all(int seed, auto&... arrays) {
  attune::Rng rng(static_cast<std::uint64_t>(seed));
  (draw(arrays, rng), ...);
}

template <int kDepth>
void expect_scores() {
  constexpr int kKeys = 5;
  std::array<std::int8_t, std::size_t{kDepth}> query;
  std::array<std::int8_t, std::size_t{kDepth * kKeys}> keys;
  std::array<float, kKeys> scales, scores;
  draw_all(kDepth, query, keys, scales);
  for (int k = 0; k < kDepth; ++k)
    keys[static_cast<std::size_t>(k)] = query[static_cast<std::size_t>(k)] = -127;
  kernels::int8_scores<kDepth>(kKeys, query.data(), 0.3f, keys.data(), scales.data(), scores.data());
  for (std::size_t t = 0; t < kKeys; ++t) {
    int sum = 0;
    for (std::size_t k = 0; k < kDepth; ++k) sum += query[k] * keys[t * kDepth + k];
    EXPECT_EQ(scores[t], static_cast<float>(sum) * (0.3f * scales[t]));
  }
}
TEST(Int8KvAttention, has_the_scores_of_plain_loops) {
  [&]<int... depth>(std::integer_sequence<int, depth...>) { (expect_scores<depth + 1>(), ...); }
  (std::make_integer_sequence<int, 21>{});
  expect_scores<64>();
}

template <int kCols>
void expect_sums() {
  constexpr int kRows = 7;
  std::array<std::int8_t, std::size_t{kRows * kCols}> rows;
  std::array<float, kRows> weights, scales;
  draw_all(kCols, rows, weights, scales);
  weights[2] = 0;
  scales[2] = check::kNan<float>;  // of a weight of zero
  std::array<float, kRows> folded;
  float largest = 0;
  for (std::size_t t = 0; t < kRows; ++t) {
    folded[t] = t == 2 ? 0 : weights[t] * scales[t];
    largest = std::fmax(largest, folded[t]);
  }
  const std::uint32_t bits = kernels::largest_folded_weight(kRows, weights.data(), scales.data(), 0);
  EXPECT_EQ(bits, kernels::magnitude_bits(largest));
  EXPECT_EQ(kernels::largest_folded_weight(kRows, weights.data(), scales.data(), bits + 1), bits + 1);
  const float inverse = kernels::row_scale(bits).inverse;
  std::array<std::int32_t, std::size_t{kCols}> sums;
  sums.fill(1000);
  kernels::add_int8_rows<kCols>(kRows, weights.data(), scales.data(), inverse, rows.data(), sums.data());
  for (std::size_t j = 0; j < kCols; ++j) {
    int sum = 1000;
    for (std::size_t t = 0; t < kRows; ++t) {
      sum += static_cast<int>(std::nearbyint(folded[t] * inverse)) * rows[t * kCols + j];
    }
    EXPECT_EQ(sums[j], sum);
  }
}
TEST(Int8KvAttention, has_the_sums_of_plain_loops) {
  expect_sums<1>();
  expect_sums<16>();
  expect_sums<37>();
}

TEST(Int8KvAttention, a_nan_scale_is_detected) {
  const float weights[] = {0.5f, 0.5f}, scales[] = {1, check::kNan<float>};
  const std::uint32_t bits = kernels::largest_folded_weight(2, weights, scales, 0);
  EXPECT_TRUE(check::is_nan(kernels::row_scale(bits).scale));
}

}  // namespace
