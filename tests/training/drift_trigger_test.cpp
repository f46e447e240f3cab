#include <attune/training/drift_trigger.hpp>

#include <limits>

#include "check.hpp"

namespace {

using attune::DriftOptions;
using attune::DriftTrigger;
using attune::Status;

constexpr DriftOptions kOptions{.expected = 0.5f, .slack = 0.25f, .start = 6, .stop = 3};

/// Adds scores around a mean until learning() is `learning`; the number of scores, at most `most`.
int scores_until(DriftTrigger& trigger, bool learning, float mean, attune::Rng& rng, int most) {
  int count = 0;
  for (; count < most && trigger.learning() != learning; ++count)
    EXPECT_EQ(trigger.add(mean + rng.uniform(-0.5f, 0.5f), kOptions), Status::kOk);
  return count;
}

}  // namespace

TEST(DriftTrigger, starts_after_a_rise_and_ends_when_the_score_is_back) {
  DriftTrigger trigger;
  attune::Rng rng(1);
  EXPECT_EQ(scores_until(trigger, true, 0.5f, rng, 2000), 2000);  // nothing changed
  const int start = scores_until(trigger, true, 1.5f, rng, 100);
  EXPECT_TRUE(start >= 6 && start < 12);                           // 6 / (1.5 − .75) = 8
  EXPECT_EQ(scores_until(trigger, false, 1.5f, rng, 2000), 2000);  // nothing is learned yet
  const int stop = scores_until(trigger, false, 0.5f, rng, 100);
  EXPECT_TRUE(stop >= 8 && stop < 18);  // 3 / .25 = 12
  EXPECT_EQ(trigger.sessions(), 1u);
  EXPECT_EQ(scores_until(trigger, true, 0.5f, rng, 2000), 2000);
}

TEST(DriftTrigger, sums_as_by_hand) {
  DriftTrigger trigger;
  for (const float score : {4.75f, 0.0f, 1.75f, 2.75f, 1.75f}) {  // 4, 3.25, 4.25, 6.25
    EXPECT_FALSE(trigger.learning() && score == 2.75f);
    EXPECT_EQ(trigger.add(score, kOptions), Status::kOk);
  }
  EXPECT_TRUE(trigger.learning());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(trigger.add(0, kOptions), Status::kOk);  // .75 each
  EXPECT_TRUE(trigger.learning());
  EXPECT_EQ(trigger.add(0, kOptions), Status::kOk);
  EXPECT_FALSE(trigger.learning());
}

TEST(DriftTrigger, refuses_invalid_scores_and_options) {
  DriftTrigger trigger;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(trigger.add(kNan, kOptions), Status::kNotFinite);
  EXPECT_EQ(trigger.add(kInfinity, kOptions), Status::kNotFinite);
  EXPECT_EQ(trigger.add(-kInfinity, kOptions), Status::kNotFinite);
  for (const DriftOptions& wrong : {DriftOptions{.slack = -1}, DriftOptions{.start = kNan},
                                    DriftOptions{.stop = kInfinity}, DriftOptions{.expected = kNan}}) {
    EXPECT_EQ(trigger.add(1, wrong), Status::kInvalidEpsilon);
  }
  EXPECT_FALSE(trigger.learning());
  EXPECT_EQ(trigger.add(100, kOptions), Status::kOk);
  EXPECT_TRUE(trigger.learning());
  trigger.clear();
  EXPECT_FALSE(trigger.learning());
}
