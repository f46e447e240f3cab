#include <attune/training/sgd.hpp>

#include "training/optimizer_check.hpp"

namespace {

using attune::Momentum;
using attune::Status;
using check::expect_refused;
using check::kInfinity;
using check::kNan;

static_assert(std::is_empty_v<attune::Sgd<>::Moments<check::Set<float>>>);

}  // namespace

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
