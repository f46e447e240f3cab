#include <attune/training/plan.hpp>

#include <attune/layers/linear.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;

struct NoPlan {};

}  // namespace

static_assert(attune::MemoryPlan<attune::BySequence, Model>);
static_assert(attune::MemoryPlan<attune::Lockstep, Model>);
static_assert(attune::MemoryPlan<attune::UpdateInBackward, Model>);
static_assert(!attune::MemoryPlan<NoPlan, Model>);

TEST(MemoryPlan, streaming_is_the_default) {
  EXPECT_TRUE(
      (std::is_same_v<attune::Trainer<Model>, attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW,
                                                              1, attune::BySequence>>));
}
