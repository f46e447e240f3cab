// Trainers of const types: decltype of a constexpr loss, optimizer or plan is const.
#include <attune/training/trainer.hpp>

#include <type_traits>

#include <attune/layers/linear.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/forward_only.hpp>

#include "check.hpp"

namespace {

using attune::Trainer;

using Model = attune::Linear<attune::LinearShape{1, 4, 3}>;
constexpr attune::WeightedCrossEntropy<3> kLoss{{{1, 2, 1}}};
using Loss = attune::WeightedCrossEntropy<3>;
constexpr attune::AdamW kOptimizer{};

// Two steps of both end with the same parameters.
template <int batch, class OfConst, class Plain, class... Mask>
void expect_same_training() {
  static OfConst of_const;
  static Plain plain;
  static_assert(std::is_trivially_copyable_v<OfConst> && sizeof(OfConst) == sizeof(Plain));
  static_assert(std::is_same_v<typename OfConst::State, typename Plain::State>);
  static_assert(OfConst::memory().object() == Plain::memory().object());
  attune::Tensor<float, batch, 4> x;
  std::array<int, std::size_t{batch}> target;
  attune::Rng rng(1);
  of_const.initialize(attune::XavierUniform{}, attune::Rng{1});
  plain.initialize(attune::XavierUniform{}, attune::Rng{1});
  for (int step = 0; step < 2; ++step) {
    check::fill(x, rng);
    for (int& id : target) id = static_cast<int>(rng.next() % 3);
    const auto mask = attune::NoMask{};
    EXPECT_TRUE(of_const.step(x, target, {}, attune::NoClipping{}, mask, kLoss).ok());
    EXPECT_TRUE(plain.step(x, target, {}, attune::NoClipping{}, mask, kLoss).ok());
  }
  EXPECT_TRUE(check::same_bits(of_const.parameters(), plain.parameters()));
}
template <class Plan, int batch>
void expect_same_with_plan() {
  using Plain = Trainer<Model, Loss, attune::AdamW, batch, Plan>;
  expect_same_training<batch, Trainer<Model, decltype(kLoss), attune::AdamW, batch, Plan>, Plain>();
  expect_same_training<batch, Trainer<Model, Loss, decltype(kOptimizer), batch, Plan>, Plain>();
  expect_same_training<batch, Trainer<const Model, decltype(kLoss), decltype(kOptimizer), batch, const Plan>,
                       Plain>();
}

}  // namespace

TEST(ConstTypes, train_under_every_plan_as_those_without_const) {
  expect_same_with_plan<attune::BySequence, 3>();
  expect_same_with_plan<attune::Lockstep, 20>();
  expect_same_with_plan<attune::UpdateInBackward, 1>();
  expect_same_with_plan<attune::Int8Training, 3>();
  expect_same_with_plan<attune::Int8TrainingWith<attune::UpdateInBackward>, 1>();
}

TEST(ConstTypes, train_in_shared_buffers_and_in_slices) {
  static attune::SharedBuffers<Model> buffers;
  constexpr attune::InSharedBuffers<buffers> kPlan{};
  static Trainer<Model, decltype(kLoss), attune::AdamW, 2, decltype(kPlan)> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  attune::Tensor<float, 1, 4> x{{1, 2, 3, 4}};
  constexpr std::array<int, 1> kTarget{1};
  constexpr attune::NoMask kMask;
  auto pass = trainer.accumulate_in_slices(x, kTarget, kMask, kLoss);
  while (pass.advance()) {
  }
  EXPECT_TRUE(pass.result().ok());
  EXPECT_TRUE(trainer.accumulate(x, kTarget, kMask, kLoss).ok());
  EXPECT_TRUE(trainer.update().ok());
}

TEST(ConstTypes, train_forward_only) {
  static attune::ForwardOnlyTrainer<Model, decltype(kLoss)> of_const;
  static attune::ForwardOnlyTrainer<Model, Loss> plain;
  attune::Tensor<float, 1, 4> x{{1, 2, 3, 4}};
  of_const.initialize(attune::XavierUniform{}, attune::Rng{1});
  plain.initialize(attune::XavierUniform{}, attune::Rng{1});
  EXPECT_TRUE(of_const.accumulate(x, std::array<int, 1>{1}, attune::NoMask{}, kLoss).ok());
  EXPECT_TRUE(plain.accumulate(x, std::array<int, 1>{1}, attune::NoMask{}, kLoss).ok());
  EXPECT_TRUE(of_const.update({}).ok() && plain.update({}).ok());
  EXPECT_TRUE(check::same_bits(of_const.parameters(), plain.parameters()));
}
