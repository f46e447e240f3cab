// Large sums, and the distances fitted to them, take little stack.
#include <attune/training/anomaly.hpp>

#include <pthread.h>

#include <cstddef>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kFeatures = 240;
using Sums = ClosedFormHead<kFeatures, 2>;
using Distance = FeatureDistance<kFeatures, 2>;
constexpr std::size_t kStack = std::size_t{128} << 10;
static_assert(sizeof(Sums) > kStack + kStack / 2 && sizeof(Distance) > kStack + kStack / 2);

Sums sums;
Distance distance;
Status fitted, refused;

void* fit(void*) {
  Sums::Features features;
  Rng rng(1);
  for (int example = 0; example < 4; ++example) {
    for (float& feature : features.values) feature = rng.uniform(-1, 1);
    (void)sums.add(features, example % 2);
  }
  fitted = distance.fit(sums);
  const float before = distance(features);
  sums.clear();
  (void)sums.add(features, 0);
  refused = distance.fit(sums, 0);
  EXPECT_EQ(distance(features), before);
  return nullptr;
}

}  // namespace

TEST(FeatureDistance, takes_little_stack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, fit, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(fitted, Status::kOk);
  EXPECT_EQ(refused, Status::kIllConditioned);
}
