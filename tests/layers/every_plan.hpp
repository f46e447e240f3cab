// A layer of any number of rows between two linear layers: every plan of training has the bits of BySequence.
#pragma once

#include <attune/layers/linear.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/training_in_slices.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace check {

template <class Own>
using Between =
    attune::Sequential<attune::Linear<attune::LinearShape{Own::Input::rows, 3, Own::Input::cols}>, Own,
                       attune::Linear<attune::LinearShape{Own::Output::rows, Own::Output::cols, 2}>>;

/// Gradients slice by slice.
template <class Model>
void expect_bits_in_slices() {
  static attune::Trainer<Model, attune::MeanSquaredError> at_once, in_slices;
  at_once.initialize(attune::XavierUniform{}, attune::Rng{5});
  in_slices.initialize(attune::XavierUniform{}, attune::Rng{5});
  attune::Rng rng(3);
  static typename Model::Input x;
  static typename Model::Output target;
  fill(x, rng);
  fill(target, rng);
  EXPECT_TRUE(at_once.accumulate(x, target).ok());
  auto pass = in_slices.template accumulate_in_slices<1>(x, target);
  while (pass.advance()) {
  }
  EXPECT_TRUE(pass.result().ok());
  EXPECT_TRUE(same_bits(at_once.gradients(), in_slices.gradients()));
}

template <class Own>
void expect_same_bits_in_every_plan() {
  using Model = Between<Own>;
  expect_same_training<attune::UpdateInBackward, Model, 1>();
  if constexpr (kHasLanes) expect_same_training<attune::Lockstep, Model, 19>();
  expect_bits_in_slices<Model>();
  // Parameters of a Checkpointed are those of the layer.
  static attune::Trainer<Model, attune::MeanSquaredError> kept;
  static attune::Trainer<Between<attune::Checkpointed<Own>>, attune::MeanSquaredError> recomputed;
  kept.initialize(attune::XavierUniform{}, attune::Rng{5});
  recomputed.initialize(attune::XavierUniform{}, attune::Rng{5});
  attune::Rng rng(3);
  static typename Model::Input x;
  static typename Model::Output target;
  fill(x, rng);
  fill(target, rng);
  for (int step = 0; step < 3; ++step) {
    const float loss = kept.step(x, target, {.learning_rate = 0.01f}).loss;
    EXPECT_EQ(recomputed.step(x, target, {.learning_rate = 0.01f}).loss, loss);
  }
}

}  // namespace check
