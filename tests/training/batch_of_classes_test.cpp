// Cross-entropy over a batch: what has no targets, one sequence, and updates in backward. Values with weights
// of classes and ignored targets: vectors of PyTorch.
#include <attune/attention/mask.hpp>
#include <attune/layers/linear.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using attune::CrossEntropyOptions;
using attune::NoClipping;
using attune::NoMask;
using attune::Status;

constexpr int kBatch = 4, kRows = 2, kClasses = 3, kIn = 2;
using Model = attune::Linear<attune::LinearShape{.rows = kRows, .d_in = kIn, .d_out = kClasses}>;
constexpr CrossEntropyOptions kSmoothing{.label_smoothing = 0.1};
using Weighted = attune::WeightedCrossEntropy<kClasses, kSmoothing>;
constexpr Weighted kLoss{{{0.25f, 4, 1.5f}}};

template <class Loss, class M = Model, int batch = kBatch, class Plan = attune::BySequence>
using TrainerOf = attune::Trainer<M, Loss, attune::Sgd<>, batch, Plan>;

template <class Trainer>
Trainer fresh() {
  Trainer trainer{};
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  return trainer;
}

attune::Tensor<float, kBatch * kRows, kIn> inputs() {
  attune::Rng rng(1);
  attune::Tensor<float, kBatch * kRows, kIn> x;
  check::fill(x, rng, -2, 2);
  return x;
}

constexpr std::array<int, kBatch * kRows> kTargets{0, -100, 1, 1, -100, -100, 2, 0};
constexpr std::array<int, kBatch * kRows> kIgnored{-100, -100, -100, -100, -100, -100, -100, -100};

}  // namespace

TEST(BatchOfClasses, without_targets_changes_nothing) {
  using Trainer = TrainerOf<attune::CrossEntropy<>>;
  Trainer trainer = fresh<Trainer>();
  const Model::Parameters before = trainer.parameters();
  const auto result = trainer.step(inputs(), kIgnored, {});
  EXPECT_EQ(result.status, Status::kNoTargets);
  EXPECT_TRUE(check::is_nan(result.loss));
  EXPECT_TRUE(check::same_bits(trainer.parameters(), before));
  // One sequence without targets is nothing special.
  EXPECT_TRUE(trainer.step(inputs(), kTargets, {}).ok());
  // Nor are targets that weigh nothing any.
  using Zero = TrainerOf<attune::WeightedCrossEntropy<kClasses>>;
  Zero zero = fresh<Zero>();
  EXPECT_EQ(zero.step(inputs(), kTargets, {}, NoClipping{}, NoMask{},
                      attune::WeightedCrossEntropy<kClasses>{{{0, 0, 0}}})
                .status,
            Status::kNoTargets);
}

TEST(BatchOfClasses, accumulate_reports_the_mean_of_a_sequence) {
  using Trainer = TrainerOf<attune::CrossEntropy<>>;
  Trainer trainer = fresh<Trainer>();
  const auto x = inputs();
  Model::Output logits;
  for (int i = 0; i < kBatch; ++i) {
    const auto input = attune::view(x).rows_at<kRows>(i * kRows);
    const std::span<const int, kRows> targets(kTargets.data() + i * kRows, kRows);
    Model::forward(trainer.parameters(), input, logits);
    const auto expected = attune::CrossEntropy<>::forward(logits, targets, logits);
    EXPECT_NEAR(trainer.accumulate(input, targets).loss, expected.loss, 1e-6f);
  }
  EXPECT_TRUE(trainer.update({}).ok());
}

TEST(BatchOfClasses, updates_in_backward_divide_by_the_weights_too) {
  using BySequence = TrainerOf<Weighted, Model, 1>;
  using InBackward = TrainerOf<Weighted, Model, 1, attune::UpdateInBackward>;
  BySequence streaming = fresh<BySequence>();
  InBackward in_backward = fresh<InBackward>();
  const auto x = inputs();
  const auto input = attune::view(x).rows_at<kRows>(0);
  const auto a = streaming.step(input, {{0, 2}}, {}, NoClipping{}, NoMask{}, kLoss);
  const auto b = in_backward.step(input, {{0, 2}}, {}, NoClipping{}, NoMask{}, kLoss);
  EXPECT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-6f);
  EXPECT_TRUE(check::same_bits(streaming.parameters(), in_backward.parameters()));
  EXPECT_EQ(in_backward.step(input, {{-100, -100}}, {}, NoClipping{}, NoMask{}, kLoss).status,
            Status::kNoTargets);
  EXPECT_TRUE(check::same_bits(streaming.parameters(), in_backward.parameters()));
}
