#include <attune/training/batch_update.hpp>

#include <cstring>

#include <attune/layers/linear.hpp>
#include <attune/training/adam.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/sgd.hpp>

#include "check.hpp"

namespace {

using namespace attune;
using check::kInfinity;
using check::kNan;

Linear<LinearShape{1, 1, 1}>::Parameters gradients_of(float weight, float bias) {
  Linear<LinearShape{1, 1, 1}>::Parameters gradients{};
  gradients.weight(0, 0) = weight;
  gradients.bias(0, 0) = bias;
  return gradients;
}
template <class Loss = MeanSquaredError, class Clipping = NoClipping>
auto gradient(float weight, float bias, float loss, float normalizer, const Clipping& clipping = {},
              float learning_rate = 1) {
  return detail::BatchGradient<float>::of<Loss, Sgd<>>(
      clipping.template norm<float>(gradients_of(weight, bias)), {.learning_rate = learning_rate}, clipping,
      {loss, normalizer});
}

}  // namespace

TEST(BatchGradient, is_scaled_to_a_mean_and_then_clipped) {
  const auto batch = gradient(6, 8, 1, 4, GradientClipping{.max_norm = 0.5f});
  EXPECT_EQ(batch.status, Status::kOk);
  EXPECT_EQ(batch.scale, 0.25f);
  EXPECT_EQ(batch.norm, 2.5f);  // √(6² + 8²) / 4
  EXPECT_EQ(batch.factor, 0.5f / (2.5f + 1e-6f));
  EXPECT_EQ(gradient<SumSquaredError>(6, 8, 1, 4).norm, 10.0f);
  EXPECT_EQ(gradient<SumSquaredError>(6, 8, 1, 4).factor, 1.0f);
}

TEST(BatchGradient, invalid_gradients_are_refused) {
  EXPECT_EQ(gradient(1, 1, 1, 0).status, Status::kNoTargets);
  EXPECT_EQ(gradient(1, 1, kInfinity<float>, 1).status, Status::kNotFinite);
  EXPECT_EQ(gradient(kNan<float>, 1, 1, 1).status, Status::kNotFinite);
  EXPECT_EQ(gradient(1, 1, 1, 1, GradientClipping{.max_norm = 0}).status, Status::kInvalidMaxNorm);
  EXPECT_EQ(gradient(1, 1, 1, 1, NoClipping{}, -1).status, Status::kInvalidLearningRate);
}

TEST(BatchUpdate, that_is_refused_does_not_begin_a_step) {
  using Layer = Linear<LinearShape{1, 1, 1}>;
  TrainingState<Layer, AdamW> state{};
  const TrainingState<Layer, AdamW> before = state;
  const auto begin = [&](float sum) {
    return detail::begin_update<MeanSquaredError>(state, 5.0f, LossSum<float>{sum, 2}, {.learning_rate = 1},
                                                  NoClipping{});
  };
  EXPECT_EQ(begin(kInfinity<float>).result.status, Status::kNotFinite);
  EXPECT_TRUE((std::memcmp(&state, &before, sizeof state) == 0));
  const auto update = begin(6);
  EXPECT_EQ(update.result.status, Status::kOk);
  EXPECT_EQ(update.result.loss, 3.0f);
  EXPECT_EQ(update.result.gradient_norm, 2.5f);
  EXPECT_TRUE(std::memcmp(&state, &before, sizeof state) != 0);  // the moments count the step
}
