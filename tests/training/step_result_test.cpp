#include <attune/training/step_result.hpp>

#include "check.hpp"

using attune::Status;
using attune::StepResult;

TEST(StepResult, that_is_refused_has_no_loss_and_no_norm) {
  constexpr auto kRefused = StepResult<float>::refused(Status::kNoTargets);
  EXPECT_TRUE(!kRefused.ok());
  EXPECT_EQ(kRefused.status, Status::kNoTargets);
  EXPECT_TRUE(kRefused.loss != kRefused.loss && kRefused.gradient_norm != kRefused.gradient_norm);
}
