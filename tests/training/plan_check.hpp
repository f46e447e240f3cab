// A training under a memory plan beside another one, by default of one sequence after the other with
// gradients: losses and parameters must be the same, bit for bit.
#pragma once

#include <cstddef>
#include <new>

#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/batch_data.hpp"

namespace check {

/// One of two trainers, in the place of the one before it: tests have many, and boards little RAM.
/// Lockstep trains as many sequences as a packet has lanes.
inline constexpr bool kHasLanes = attune::kernels::kLanes<attune::kernels::Packet<float>> > 1;
struct Storage {
  alignas(64) unsigned char bytes[(kDepth >= kQuickHost ? 1024 : kHasLanes ? 512 : 72) * 1024];
};
template <int place>
inline constinit Storage storage{};
template <int place, class Trainer>
Trainer& fresh() {
  static_assert(sizeof(Trainer) <= sizeof storage<place>.bytes);
  auto& trainer = *new (storage<place>.bytes) Trainer{};
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  return trainer;
}

template <class Model>
using AdamOf = attune::Adam<attune::AdamVariant{}, typename Model::Scalar>;

/// The plan of a test: UpdateInBackward keeps no gradients, even where that takes more RAM.
template <class Plan, class Optimizer>
struct TestedPlan {
  using type = Plan;
};
template <class Optimizer>
struct TestedPlan<attune::UpdateInBackward, Optimizer> {
  using type = attune::detail::NoGradientsKept<attune::detail::kUpdateBlockIn<Optimizer>>;
};

/// Three steps.
template <class Plan, class Model, int batch, class Loss = attune::MeanSquaredError,
          class Optimizer = AdamOf<Model>, class Plain = attune::BySequence, class Masks = attune::NoMask,
          class Clipping = attune::NoClipping>
void expect_same_training(const Masks& masks = {}, const Clipping& clipping = {}, const Loss& loss = {}) {
  using Planned = attune::Trainer<Model, Loss, Optimizer, batch, typename TestedPlan<Plan, Optimizer>::type>;
  static_assert(Planned::memory().object() == sizeof(Planned));
  constexpr bool kPlaced = requires { Plan::working_weights(); }
  || requires { Plan::placed_gradients(); };
  static_assert(std::is_trivially_copyable_v<Planned> == !kPlaced);
  auto& planned = fresh<0, Planned>();
  auto& plain = fresh<1, attune::Trainer<Model, Loss, Optimizer, batch, Plain>>();
  typename Planned::BatchInput x;
  typename Planned::BatchTarget target;
  attune::Rng rng(1);
  for (int step = 0; step < 3; ++step) {
    fill_batch(x, rng);
    fill_batch(target, rng, batch > 1);
    typename Optimizer::Options options{};
    if constexpr (requires { options.weights; }) {
      options = {.weights = {.learning_rate = 0.01f}};
    } else {
      options.learning_rate = 0.01f;
    }
    const auto a = planned.step(x, target, options, clipping, masks, loss);
    const auto b = plain.step(x, target, options, clipping, masks, loss);
    EXPECT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5f * static_cast<float>(b.gradient_norm));
    EXPECT_TRUE(same_bits(planned.parameters(), plain.parameters()));
  }
}

}  // namespace check
