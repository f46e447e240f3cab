#include <attune/training/optimizer.hpp>

#include <attune/training/trainer.hpp>

#include "training/optimizer_check.hpp"

namespace {

// p ← p − lr·sign(g), and how many steps there were.
struct SignDescent {
  using Scalar = float;
  struct Options {
    float learning_rate = 0.125f;
  };
  template <class Parameters>
  struct Moments {
    int steps;
    void reset() { steps = 0; }
  };
  static constexpr int kMoments = 0;
  struct Coefficients {
    float step;
  };
  static attune::Status check(const Options& options) {
    return options.learning_rate > 0 ? attune::Status::kOk : attune::Status::kInvalidLearningRate;
  }
  static Coefficients advance(auto& moments, const Options& options, float) {
    ++moments.steps;
    return {options.learning_rate};
  }
  static void update(const Coefficients& c, attune::TensorKind, int size, float* p, const float* g) {
    for (int i = 0; i < size; ++i) p[i] -= g[i] > 0 ? c.step : -c.step;
  }
  static void for_each_with_moments(const auto& visitor, auto&, auto&... sets) {
    attune::for_each_tensor(visitor, sets...);
  }
};

using Layer = attune::Linear<attune::LinearShape{2, 3, 5}>;
static_assert(attune::IsOptimizer<SignDescent, Layer::Parameters>);

}  // namespace

TEST(Optimizer, user_optimizers_step_tensor_by_tensor) {
  Layer::Parameters parameters{}, gradients{};
  SignDescent::Moments<Layer::Parameters> moments{};
  gradients.weight(1, 2) = 3;
  gradients.bias(0, 4) = -1;
  EXPECT_EQ((attune::optimizer_step<SignDescent>(parameters, gradients, moments, {})), attune::Status::kOk);
  EXPECT_EQ(moments.steps, 1);
  EXPECT_EQ(parameters.weight(1, 2), -0.125f);
  EXPECT_EQ(parameters.bias(0, 4), 0.125f);
}

TEST(Optimizer, refused_options_change_nothing) {
  Layer::Parameters parameters{}, gradients{};
  SignDescent::Moments<Layer::Parameters> moments{};
  EXPECT_EQ((attune::optimizer_step<SignDescent>(parameters, gradients, moments, {.learning_rate = 0})),
            attune::Status::kInvalidLearningRate);
  EXPECT_EQ(moments.steps, 0);
  EXPECT_EQ(parameters.weight(0, 0), 0);
}

TEST(Optimizer, user_optimizers_train_in_every_plan) {
  static attune::Trainer<Layer, attune::MeanSquaredError, SignDescent> streaming;
  static attune::Trainer<Layer, attune::MeanSquaredError, SignDescent, 1, attune::UpdateInBackward>
      in_backward;
  streaming.initialize(attune::XavierUniform{}, attune::Rng{1});
  in_backward.initialize(attune::XavierUniform{}, attune::Rng{1});
  attune::Rng rng(2);
  Layer::Input x;
  Layer::Output target;
  check::fill(x, rng);
  check::fill(target, rng);
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(streaming.step(x, target, {}).ok());
    EXPECT_TRUE(in_backward.step(x, target, {}).ok());
  }
  EXPECT_TRUE(check::same_bits(streaming.parameters(), in_backward.parameters()));
}
