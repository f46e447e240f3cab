#include <attune/training/sgd.hpp>

#include "training/optimizer_check.hpp"

namespace {

using attune::Momentum;
using attune::Status;
using check::expect_refused;
using check::kInfinity;
using check::kNan;
using check::Set;
using check::State;

}  // namespace

TEST(Sgd, steps_against_the_gradient) {
  using Optimizer = attune::Sgd<>;
  State<Optimizer> state;
  const auto before = state.parameters;
  EXPECT_EQ(state.step({.learning_rate = 0.5f}), Status::kOk);
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(state.parameters.weight.values[i],
              before.weight.values[i] - 0.5f * state.gradients.weight.values[i]);
  }
  static_assert(std::is_empty_v<Optimizer::Moments<Set<float>>>);
}

TEST(Sgd, weight_decay_is_coupled) {
  State<attune::Sgd<Momentum::kNone, double>> state;
  const auto before = state.parameters;
  EXPECT_EQ(state.step({.learning_rate = 0.5, .weight_decay = 0.1}), Status::kOk);
  for (int i = 0; i < 15; ++i) {
    const double g = state.gradients.weight.values[i] + 0.1 * before.weight.values[i];
    EXPECT_NEAR(state.parameters.weight.values[i], before.weight.values[i] - 0.5 * g, 1e-15);
  }
}

namespace {

// torch.optim.SGD with momentum 0.9, three steps with one gradient: b is g, then 0.9·b + (1 − dampening)·g.
template <Momentum kind>
void expect_momentum(double dampening) {
  State<attune::Sgd<kind, double>> state;
  for (int i = 0; i < 15; ++i) {
    const double g = state.gradients.weight.values[i];
    double p = State<attune::Sgd<kind, double>>{}.parameters.weight.values[i], b = 0;
    for (int t = 0; t < 3; ++t) {
      b = t == 0 ? g : 0.9 * b + (1 - dampening) * g;
      p -= 0.1 * (kind == Momentum::kNesterov ? g + 0.9 * b : b);
    }
    state.gradients.bias.values[0] = 0;
    auto copy = state;
    for (int t = 0; t < 3; ++t)
      EXPECT_EQ(copy.step({.learning_rate = 0.1, .momentum = 0.9, .dampening = dampening}), Status::kOk);
    EXPECT_NEAR(copy.parameters.weight.values[i], p, 2e-15);
  }
}

}  // namespace

TEST(Sgd, momentum_accumulates) {
  expect_momentum<Momentum::kClassic>(0.0);
  expect_momentum<Momentum::kClassic>(0.5);
}
TEST(Sgd, nesterov_looks_ahead) { expect_momentum<Momentum::kNesterov>(0.0); }

TEST(Sgd, refuses_invalid_options) {
  using Plain = attune::Sgd<>;
  using Classic = attune::Sgd<Momentum::kClassic>;
  using Nesterov = attune::Sgd<Momentum::kNesterov>;
  for (const float bad : {-1e-3f, kNan<float>, kInfinity<float>}) {
    expect_refused<Plain>({.learning_rate = bad}, Status::kInvalidLearningRate);
    expect_refused<Classic>({.weight_decay = bad}, Status::kInvalidWeightDecay);
    expect_refused<Classic>({.momentum = bad}, Status::kInvalidMomentum);
    expect_refused<Classic>({.dampening = bad}, Status::kInvalidMomentum);
  }
  expect_refused<Classic>({.momentum = 1.5f}, Status::kInvalidMomentum);
  expect_refused<Plain>({.momentum = 0.9f}, Status::kInvalidMomentum);
  expect_refused<Nesterov>({.momentum = 0.0f}, Status::kInvalidMomentum);
  expect_refused<Nesterov>({.dampening = 0.5f}, Status::kInvalidMomentum);
}
