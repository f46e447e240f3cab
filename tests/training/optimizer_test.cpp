#include <algorithm>

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

// Scales each group of gradients by its largest: a group that is cut in two has another result.
struct ScaledInGroups : SignDescent {
  static constexpr int kUpdateBlock = 96;
  static void update(const Coefficients& c, attune::TensorKind, int size, float* p, const float* g) {
    for (int first = 0; first < size; first += kUpdateBlock) {
      const int end = (std::min)(first + kUpdateBlock, size);
      float largest = 0;
      for (int i = first; i < end; ++i) largest = (std::max)(largest, g[i]);
      for (int i = first; i < end; ++i) p[i] -= c.step * g[i] / largest;
    }
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

// Also where gradients are cleared a cache's worth at a time.
TEST(Optimizer, elements_that_update_together_are_never_split) {
  using Wide = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 50, .d_out = 50, .bias = false}>;
  static attune::Trainer<Wide, attune::MeanSquaredError, ScaledInGroups> trainer;
  trainer.load(Wide::Parameters{}, attune::Rng{1});
  Wide::Input x;
  Wide::Output target;
  for (int j = 0; j < 50; ++j) x.values[j] = 1 + static_cast<float>(j), target.values[j] = -1;
  EXPECT_TRUE(trainer.step(x, target, {}).ok());
  const float* const p = trainer.parameters().weight.values;
  for (int i = 0; i < Wide::Parameters{}.weight.size; ++i) {
    const int last = (std::min)(i / 96 * 96 + 95, 2499);  // the largest gradient of its group
    EXPECT_NEAR(p[i], -0.125f * x.values[i / 50] / x.values[last / 50], 1e-6f) << i;
  }
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
