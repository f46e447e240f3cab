// Distances of features, energies, and quantiles of a stream: against definitions in double and sorted
// numbers.
#include <attune/training/anomaly.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kFeatures = 4, kClasses = 3;
using Sums = ClosedFormHead<kFeatures, kClasses>;
using Distance = FeatureDistance<kFeatures, kClasses>;
using Features = Distance::Features;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Features of a class; each depends on the one before.
Features draw(Rng& rng, int label) {
  Features x;
  float before = 0;
  for (int i = 0; i < kFeatures; ++i) {
    before = 0.5f * before + rng.normal();
    x(0, i) = before + (i == label ? 6.0f : 0.0f);
  }
  return x;
}
Sums draw_sums(Rng& rng, int count, int classes = kClasses) {
  Sums sums{};
  for (int i = 0; i < count; ++i) EXPECT_EQ(sums.add(draw(rng, i % classes), i % classes), Status::kOk);
  return sums;
}

}  // namespace

TEST(FeatureDistance, has_the_distribution_of_squares_of_normal_numbers) {
  Rng rng(1);
  Distance distance;
  EXPECT_EQ(distance.fit(draw_sums(rng, 600), 0), Status::kOk);
  // d² to the right class is χ² with kFeatures degrees of freedom: mean 4, 95 % below 9.49.
  double sum = 0;
  int above = 0;
  for (int i = 0; i < 600; ++i) {
    const float d = distance(draw(rng, i % kClasses));
    sum += static_cast<double>(d);
    above += d > 9.49f;
  }
  EXPECT_NEAR(sum / 600, 4, 0.4);
  EXPECT_NEAR(above, 30, 15);
  Features far = draw(rng, 0);
  far(0, 3) = 8;  // no class is there
  EXPECT_GT(distance(far), 20.0f);
}

TEST(FeatureDistance, follows_correlations) {
  Rng rng(2);
  FeatureDistance<2, 2> distance;
  ClosedFormHead<2, 2> sums{};
  for (int i = 0; i < 400; ++i) {  // both features are almost equal
    const float x = rng.normal();
    EXPECT_EQ(sums.add(Tensor<float, 1, 2>{{x + 0.1f * rng.normal(), x}}, 0), Status::kOk);
  }
  EXPECT_EQ(distance.fit(sums, 0), Status::kOk);  // of the second class there is no example
  EXPECT_LT(distance(Tensor<float, 1, 2>{{1.5f, 1.5f}}), 4.0f);
  EXPECT_GT(distance(Tensor<float, 1, 2>{{1.5f, -1.5f}}), 100.0f);
}

TEST(FeatureDistance, has_the_same_bits_on_all_targets) {
  Rng rng(3);
  Distance distance;
  EXPECT_EQ(distance.fit(draw_sums(rng, 60)), Status::kOk);
  Tensor<float, 1, 8> distances;
  for (int i = 0; i < 8; ++i) distances(0, i) = distance(draw(rng, i % kClasses));
  EXPECT_EQ(hash_bits(distances), check::by_policy(0x4940386u, 0x8C43A917u));
}

TEST(FeatureDistance, refuses_sums_it_cannot_fit) {
  Rng rng(4);
  Distance distance{};
  const Features x = draw(rng, 0);
  EXPECT_EQ(distance(x), kInfinity);
  EXPECT_EQ(distance.fit(Sums{}), Status::kNoTargets);
  for (const float bad : {-1.0f, kNan, kInfinity}) {
    EXPECT_EQ(distance.fit(draw_sums(rng, 30), bad), Status::kInvalidWeightDecay);
  }
  EXPECT_EQ(distance.fit(draw_sums(rng, 2), 0), Status::kIllConditioned);
  Sums equal{};  // all examples are one
  for (int i = 0; i < 20; ++i) EXPECT_EQ(equal.add(x, 0), Status::kOk);
  EXPECT_EQ(distance.fit(equal, 0), Status::kIllConditioned);
  EXPECT_EQ(distance(x), kInfinity);  // nothing has changed
  EXPECT_EQ(distance.fit(draw_sums(rng, 30)), Status::kOk);
  Features broken = x;
  broken(0, 2) = kNan;
  EXPECT_EQ(distance(broken), kInfinity);  // above any threshold
  broken(0, 2) = kInfinity;
  EXPECT_EQ(distance(broken), kInfinity);
}

TEST(Energy, is_large_where_no_class_fits) {
  EXPECT_NEAR(energy(Tensor<float, 1, 3>{{0, 0, 0}}), -std::log(3.0f), 1e-6f);
  EXPECT_NEAR(energy(Tensor<float, 1, 3>{{1000, 0, 0}}), -1000.0f, 1e-3f);
  EXPECT_GT(energy(Tensor<float, 1, 3>{{-1, -1, -1}}), energy(Tensor<float, 1, 3>{{5, -1, -1}}));
}

namespace {

template <QuantileOptions options>
void expect_near_sorted_numbers() {
  constexpr double kShare = options.share;
  for (const bool squared : {false, true}) {
    Rng rng(5);
    static std::array<float, 2000> numbers;
    Quantile<options> quantile{};
    for (float& x : numbers) {
      x = rng.normal();
      if (squared) x *= x;
      EXPECT_EQ(quantile.add(x), Status::kOk);
    }
    std::sort(numbers.begin(), numbers.end());
    const auto rank = std::lower_bound(numbers.begin(), numbers.end(), quantile.value()) - numbers.begin();
    EXPECT_NEAR(static_cast<double>(rank) / 2000, kShare, 0.01);
    EXPECT_EQ(quantile.count(), 2000u);
    quantile.clear();
    EXPECT_EQ(quantile.value(), kInfinity);
  }
}

}  // namespace

TEST(Quantile, is_near_that_of_sorted_numbers) {
  expect_near_sorted_numbers<QuantileOptions{.share = 0.5}>();
  expect_near_sorted_numbers<QuantileOptions{.share = 0.9}>();
  expect_near_sorted_numbers<QuantileOptions{.share = 0.95}>();
  expect_near_sorted_numbers<QuantileOptions{.share = 0.99}>();
}

TEST(Quantile, is_exact_for_a_few_numbers) {
  Quantile<QuantileOptions{.share = 0.5}> median{};
  Quantile<QuantileOptions{.share = 0.95}> high{};
  EXPECT_EQ(median.value(), kInfinity);
  for (const float x : {3.0f, 1.0f, 2.0f}) {
    EXPECT_EQ(median.add(x), Status::kOk);
    EXPECT_EQ(high.add(x), Status::kOk);
  }
  EXPECT_EQ(median.value(), 2.0f);
  EXPECT_EQ(high.value(), 3.0f);
}

TEST(Quantile, stands_equal_sorted_and_extreme_numbers) {
  Quantile<QuantileOptions{.share = 0.9}> equal{}, rising{}, falling{}, extreme{};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(equal.add(7), Status::kOk);
    EXPECT_EQ(rising.add(static_cast<float>(i)), Status::kOk);
    EXPECT_EQ(falling.add(static_cast<float>(1000 - i)), Status::kOk);
    EXPECT_EQ(extreme.add(i % 2 == 0 ? 3e38f : -3e38f), Status::kOk);
  }
  EXPECT_EQ(equal.value(), 7.0f);
  EXPECT_NEAR(rising.value(), 900, 30);
  EXPECT_NEAR(falling.value(), 900, 30);
  EXPECT_EQ(extreme.value(), 3e38f);
  EXPECT_EQ(equal.add(kNan), Status::kNotFinite);
  EXPECT_EQ(equal.add(kInfinity), Status::kNotFinite);
  EXPECT_EQ(equal.count(), 1000u);
}

TEST(Quantile, has_the_same_bits_on_all_targets) {
  Rng rng(6);
  Quantile<QuantileOptions{.share = 0.95}> quantile{};
  for (int i = 0; i < 500; ++i) EXPECT_EQ(quantile.add(rng.normal()), Status::kOk);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(quantile.value()), check::by_policy(0x3FC118E8u, 0x3FC118E9u));
}
