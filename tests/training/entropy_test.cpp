// The entropy of outputs, InfoMax, and labels beside them: values, gradients, and the mean probabilities of a
// batch.
#include <attune/training/entropy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <attune/layers/linear.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using namespace attune;

constexpr int kBatch = 6, kClasses = 5;
using Marginal = ClassMarginal<kClasses, double>;
using Batch = Tensor<double, kBatch, kClasses>;

/// Mean entropy minus entropy of the mean, from its definition.
double info_max(const Batch& logits) {
  double loss = 0, mean[kClasses] = {};
  for (int i = 0; i < kBatch; ++i) {
    double all = 0;
    for (int c = 0; c < kClasses; ++c) all += std::exp(logits(i, c));
    for (int c = 0; c < kClasses; ++c) {
      const double p = std::exp(logits(i, c)) / all;
      loss -= p * std::log(p) / kBatch;
      mean[c] += p / kBatch;
    }
  }
  for (const double p : mean) loss += p * std::log(p);
  return loss;
}
void marginal_of(const Batch& logits, Batch& target) {
  Marginal marginal{};
  Marginal::Logits row, logarithms;
  for (int i = 0; i < kBatch; ++i) {
    for (int c = 0; c < kClasses; ++c) row(0, c) = logits(i, c);
    EXPECT_EQ(marginal.add(row), Status::kOk);
  }
  EXPECT_EQ(marginal.logarithms(logarithms), Status::kOk);
  for (int i = 0; i < kBatch; ++i) {
    for (int c = 0; c < kClasses; ++c) target(i, c) = logarithms(0, c);
  }
}

}  // namespace

TEST(Entropy, is_that_of_the_probabilities) {
  const Tensor<double, 1, 2> equal{{3, 3}}, sure{{50, -50}}, target{};
  Tensor<double, 1, 2> dy;
  EXPECT_NEAR(Entropy::forward(equal, target, dy), std::log(2.0), 1e-12);
  EXPECT_NEAR(dy(0, 0), 0, 1e-12);
  EXPECT_NEAR(Entropy::forward(sure, target, dy), 0, 1e-12);
}

TEST(Entropy, gradient_is_the_derivative) {
  Rng rng(1);
  Batch y, target, dy, unused;
  check::fill(y, rng, -2, 2);
  for (const bool zero : {true, false}) {
    check::fill(target, rng, -2, 2);
    if (zero) target = {};
    (void)Entropy::forward(y, target, dy, 0.25);
    const auto loss = [&] { return Entropy::forward(y, target, unused, 0.25); };
    EXPECT_GT(check::expect_gradient({"y"}, loss, y, dy), 0.001);
  }
}

TEST(Entropy, with_the_marginal_is_info_max_with_its_gradient) {
  Rng rng(2);
  Batch y, target, dy;
  check::fill(y, rng, -2, 2);
  marginal_of(y, target);
  EXPECT_NEAR(Entropy::forward(y, target, dy), info_max(y), 1e-12);
  // The derivative of the definition, in which the marginal moves too.
  const auto loss = [&] { return info_max(y); };
  EXPECT_GT(check::expect_gradient({"y"}, loss, y, dy), 0.001);
}

TEST(Entropy, works_in_place_and_keeps_nan) {
  Tensor<float, 2, 3> y{{1, 2, 3, -1, 0, 5}}, target{{0, 1, 0, 0, 0, -1}}, dy;
  const float loss = Entropy::forward(y, target, dy);
  EXPECT_EQ(Entropy::forward(y, target, y), loss);
  EXPECT_TRUE(check::same_bits(y, dy));
  y(1, 1) = check::kNan<float>;
  EXPECT_TRUE(check::is_nan(Entropy::forward(y, target, y)));
}

TEST(Entropy, makes_a_trainer_sure_without_labels) {
  using Model = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = kClasses}>;
  static Trainer<Model, Entropy, Sgd<>, kBatch> trainer;
  trainer.initialize(XavierUniform{}, Rng(3));
  static Tensor<float, 1, 3> x[kBatch];
  Rng rng(4);
  for (auto& take : x) check::fill(take, rng, -2, 2);
  float first = 0, last = 0;
  static ClassMarginal<kClasses> marginal;
  for (int step = 0; step < 60; ++step) {
    Model::Output logits, target;
    marginal.clear();
    for (const auto& take : x) {
      EXPECT_EQ(trainer.predict(take, logits), Status::kOk);
      EXPECT_EQ(marginal.add(logits), Status::kOk);
    }
    EXPECT_EQ(marginal.logarithms(target), Status::kOk);
    for (const auto& take : x) EXPECT_TRUE(trainer.accumulate(take, target).ok());
    const auto result = trainer.update({.learning_rate = 0.5f});
    EXPECT_TRUE(result.ok());
    (step == 0 ? first : last) = result.loss;
  }
  EXPECT_LT(last, first - 0.5f);
}

TEST(Entropy, of_nan_stops_a_step) {
  using Model = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = kClasses}>;
  static Trainer<Model, Entropy, Sgd<>, 1> trainer;
  trainer.initialize(XavierUniform{}, Rng(3));
  const auto before = hash_bits(trainer.parameters());
  Model::Output target{};
  target(0, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(trainer.step(Tensor<float, 1, 3>{{1, 2, 3}}, target, {.learning_rate = 0.5f}).status,
            Status::kNotFinite);
  EXPECT_EQ(hash_bits(trainer.parameters()), before);
}

TEST(SemiSupervised, is_cross_entropy_of_labels_and_entropy_of_the_rest) {
  Rng rng(5);
  Batch y, target{}, dy, of_entropy;
  check::fill(y, rng, -2, 2);
  for (int i = 0; i < 2; ++i) target(i, i + 1) = 1;           // two labels
  for (int c = 0; c < kClasses; ++c) target(2, c) = 1.0 / 5;  // a soft one
  for (int i = 4; i < kBatch; ++i) {
    for (int c = 0; c < kClasses; ++c) target(i, c) = -1 - 0.1 * c;
  }
  double expected = 0;
  for (int i = 0; i < kBatch; ++i) {
    Tensor<double, 1, kClasses> row, of_row, label;
    for (int c = 0; c < kClasses; ++c) row(0, c) = y(i, c), label(0, c) = target(i, c);
    if (i < 2) {
      const auto loss = CrossEntropy<>::forward(row, std::array{i + 1}, of_row);
      EXPECT_TRUE(loss.ok());
      expected += loss.loss / kBatch;
    } else if (i == 2) {
      for (int c = 0; c < kClasses; ++c) {
        const auto loss = CrossEntropy<>::forward(row, std::array{c}, of_row);
        EXPECT_TRUE(loss.ok());
        expected += loss.loss / kClasses / kBatch;
      }
    } else {
      expected += Entropy::forward(row, label, of_row) / kBatch;
    }
  }
  EXPECT_NEAR(SemiSupervised::forward(y, target, dy), expected, 1e-12);
  Batch unused;
  const auto loss = [&] { return SemiSupervised::forward(y, target, unused); };
  EXPECT_GT(check::expect_gradient({"y"}, loss, y, dy), 0.001);
  for (double& value : target.values) value = std::min(value, 0.0);
  const double without = SemiSupervised::forward(y, target, dy);
  EXPECT_EQ(without, Entropy::forward(y, target, of_entropy));
  EXPECT_TRUE(check::same_bits(dy, of_entropy));
}

TEST(SemiSupervised, works_in_place_and_keeps_nan) {
  Tensor<float, 2, 3> y{{1, 2, 3, -1, 0, 5}}, target{{0, 1, 0, 0, 0, -1}}, dy;
  const float loss = SemiSupervised::forward(y, target, dy);
  EXPECT_EQ(SemiSupervised::forward(y, target, y), loss);
  EXPECT_TRUE(check::same_bits(y, dy));
  y(0, 1) = check::kNan<float>;
  EXPECT_TRUE(check::is_nan(SemiSupervised::forward(y, target, y)));
}

namespace {

// The bits of Lockstep; the loss falls by half.
template <class Loss>
void expect_lockstep_alike() {
  using Model = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = kClasses}>;
  static Trainer<Model, Loss, Sgd<>, 4> one_by_one;
  static Trainer<Model, Loss, Sgd<>, 4, Lockstep> together;
  one_by_one.initialize(XavierUniform{}, Rng(3));
  together.initialize(XavierUniform{}, Rng(3));
  Rng rng(4);
  Tensor<float, 4, 3> x;
  Tensor<float, 4, kClasses> targets{};
  check::fill(x, rng, -2, 2);
  if constexpr (std::is_same_v<Loss, SemiSupervised>) targets(1, 3) = 1;
  float first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    const auto result = one_by_one.step(x, targets, {.learning_rate = 0.3f});
    EXPECT_TRUE(result.ok() && together.step(x, targets, {.learning_rate = 0.3f}).ok());
    (step == 0 ? first : last) = result.loss;
  }
  EXPECT_EQ(hash_bits(one_by_one.parameters()), hash_bits(together.parameters()));
  EXPECT_LT(last, 0.5f * first);
}

}  // namespace

TEST(SemiSupervised, trains_in_lockstep_and_sequence_by_sequence_alike) {
  expect_lockstep_alike<SemiSupervised>();
}
TEST(Entropy, trains_in_lockstep_and_sequence_by_sequence_alike) { expect_lockstep_alike<Entropy>(); }

TEST(ClassMarginal, logarithms_of_sure_outputs_are_not_positive) {
  ClassMarginal<2> marginal{};
  Tensor<float, 1, 2> target;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(marginal.add(Tensor<float, 1, 2>{{40, -40}}), Status::kOk);
  EXPECT_EQ(marginal.logarithms(target), Status::kOk);
  EXPECT_TRUE(target(0, 0) <= 0 && target(0, 1) < 0);
}

TEST(ClassMarginal, refuses_infinity_and_an_empty_batch) {
  ClassMarginal<3> marginal{};
  Tensor<float, 1, 3> logits{{1, 2, 3}}, target{{7, 7, 7}};
  EXPECT_EQ(marginal.logarithms(target), Status::kNoTargets);
  EXPECT_EQ(target(0, 0), 7.0f);
  logits(0, 1) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(marginal.add(logits), Status::kNotFinite);
  EXPECT_EQ(marginal.count(), 0);
  logits(0, 1) = -1e20f;  // a class that never comes
  EXPECT_EQ(marginal.add(logits), Status::kOk);
  EXPECT_EQ(marginal.logarithms(target), Status::kOk);
  EXPECT_NEAR(target(0, 1), std::log(1e-30f), 1e-3f);
  EXPECT_NEAR(std::exp(target(0, 0)) + std::exp(target(0, 2)), 1, 1e-6f);
}
