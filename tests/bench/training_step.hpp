// One attention layer, everything it needs to train, and the two pieces of work that are timed: a step and a
// forward pass.
#pragma once

#include <algorithm>
#include <array>

#include <attune/attune.hpp>

namespace bench {

inline constexpr std::array<attune::AttentionShape, 6> kShapes{{
    {.seq_len = 8, .d_model = 16, .num_heads = 2},
    {.seq_len = 16, .d_model = 32, .num_heads = 4},
    {.seq_len = 32, .d_model = 64, .num_heads = 4},
    {.seq_len = 64, .d_model = 64, .num_heads = 4},
    {.seq_len = 128, .d_model = 128, .num_heads = 8},
    {.seq_len = 64, .d_model = 512, .num_heads = 8},
}};

template <attune::AttentionShape shape>
struct TrainingStep {
  using Layer = attune::MultiHeadAttention<shape>;
  using Parameters = typename Layer::Parameters;

  /// Floating-point operations of the products alone; backward has two for each of forward.
  static constexpr double kForwardFlops = 8.0 * shape.seq_len * shape.d_model * shape.d_model +
                                          4.0 * shape.seq_len * shape.seq_len * shape.d_model;
  static constexpr double kStepFlops = 3 * kForwardFlops;

  Parameters parameters;
  Parameters gradients;
  attune::AdamW::Moments<Parameters> moments;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference_scratch;
  typename Layer::Input x, dx;
  typename Layer::Output target, y, dy;
  float loss;

  void initialize() {
    attune::Rng rng(1);
    attune::initialize(parameters, attune::XavierUniform{}, rng);
    moments.reset();
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
  }

  /// Inference.
  void forward() { Layer::forward(parameters, x, y, inference_scratch); }

  /// Forward, loss, backward with dx, AdamW.
  void step() {
    attune::set_zero(gradients);
    Layer::forward(parameters, x, y, tape, scratch);
    loss = attune::MeanSquaredError::forward(y, target, dy);
    Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
    (void)attune::AdamW::step(parameters, gradients, moments, {.learning_rate = 1e-3f});
  }
};

}  // namespace bench
