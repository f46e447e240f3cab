#include <attune/training/parameter_groups.hpp>

#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using attune::ParameterGroups;
using attune::Status;
using attune::TensorKind;

using Model = attune::Sequential<attune::Linear<attune::LinearShape{2, 3, 4}>,
                                 attune::LayerNorm<attune::NormShape{.rows = 2, .d_model = 4}>,
                                 attune::Linear<attune::LinearShape{2, 4, 3}>>;
template <class M, class Optimizer>
using TrainerOf = attune::Trainer<M, attune::MeanSquaredError, Optimizer>;

template <class Trainer>
void train(Trainer& trainer, const typename Trainer::Options& options, int steps = 3) {
  trainer.initialize(attune::LinearDefault{}, attune::Rng{1});
  attune::Rng rng(2);
  typename Trainer::BatchInput x;
  typename Trainer::BatchTarget target;
  for (int step = 0; step < steps; ++step) {
    check::fill(x, rng);
    check::fill(target, rng);
    EXPECT_TRUE(trainer.step(x, target, options).ok());
  }
}

// After the first step: every tensor as the optimizer with the options of its kind would have it.
template <class Optimizer>
void expect_groups(const typename ParameterGroups<Optimizer>::Options& options) {
  static TrainerOf<Model, ParameterGroups<Optimizer>> grouped;
  static TrainerOf<Model, Optimizer> weights, biases, norms;
  train(grouped, options, 1);
  train(weights, options.weights, 1);
  train(biases, options.biases, 1);
  train(norms, options.norms, 1);
  int seen[3] = {};
  attune::for_each_tensor(
      [&seen](const attune::TensorPath& path, const auto& all, const auto& weight, const auto& bias,
              const auto& norm) {
        ++seen[static_cast<int>(path.kind)];
        const auto& expected = path.kind == TensorKind::kWeight ? weight
                               : path.kind == TensorKind::kBias ? bias
                                                                : norm;
        EXPECT_TRUE(check::same_bits(all, expected));
      },
      grouped.parameters(), weights.parameters(), biases.parameters(), norms.parameters());
  EXPECT_EQ(seen[0], 2);
  EXPECT_EQ(seen[1], 3);
  EXPECT_EQ(seen[2], 1);
}

}  // namespace

TEST(ParameterGroups, give_each_kind_its_options) {
  expect_groups<attune::AdamW>({.weights = {.learning_rate = 0.01f, .weight_decay = 0.5f},
                                .biases = {.learning_rate = 0.02f, .weight_decay = 0},
                                .norms = {.learning_rate = 0.03f, .beta1 = 0.5, .weight_decay = 0}});
  expect_groups<attune::Sgd<attune::Momentum::kClassic>>({.weights = {.learning_rate = 0.1f},
                                                          .biases = {.learning_rate = 0.2f},
                                                          .norms = {.learning_rate = 0.3f}});
  expect_groups<attune::Sgd<>>({.weights = {.learning_rate = 0.1f, .weight_decay = 0.1f},
                                .biases = {.learning_rate = 0.2f},
                                .norms = {.learning_rate = 0.3f}});
}

TEST(ParameterGroups, of_one_option_are_the_optimizer) {
  static TrainerOf<Model, ParameterGroups<attune::AdamW>> grouped;
  static TrainerOf<Model, attune::AdamW> plain;
  train(grouped, {.weights = {.learning_rate = 0.01f}});
  train(plain, {.learning_rate = 0.01f});
  EXPECT_TRUE(check::same_bits(grouped.parameters(), plain.parameters()));
}

TEST(ParameterGroups, without_decay_leave_untouched_biases_alone) {
  using Optimizer = ParameterGroups<attune::AdamW>;
  using Linear = attune::Linear<attune::LinearShape{1, 2, 2}>;
  Linear::Parameters parameters{{{1, 1, 1, 1}}, {{1, 1}}};
  const Linear::Parameters gradients{};
  Optimizer::Moments<Linear::Parameters> moments{};
  EXPECT_EQ(Optimizer::step(parameters, gradients, moments,
                            {.weights = {.learning_rate = 0.5f, .weight_decay = 0.5f},
                             .biases = {.learning_rate = 0.5f, .weight_decay = 0}}),
            Status::kOk);
  EXPECT_EQ(parameters.weight(0, 0), 0.75f);
  EXPECT_EQ(parameters.bias(0, 0), 1.0f);
}

TEST(ParameterGroups, refuse_options_that_one_group_refuses) {
  using Optimizer = ParameterGroups<attune::AdamW>;
  EXPECT_EQ(Optimizer::check({.weights = {.learning_rate = -1}}), Status::kInvalidLearningRate);
  EXPECT_EQ(Optimizer::check({.biases = {.epsilon = 0}}), Status::kInvalidEpsilon);
  EXPECT_EQ(Optimizer::check({.norms = {.beta1 = 1}}), Status::kInvalidBeta);
}
