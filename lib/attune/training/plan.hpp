// Memory plans: types that decide how a Trainer uses RAM.
//
//   BySequence         one sequence at a time, gradients added up over the batch      (this header)
//   Lockstep           as many sequences at once as a packet has lanes: more RAM, more speed on a PC
//   UpdateInBackward   a batch of one, no gradients, where that takes less: the least RAM
//   Int8Training       one sequence at a time, products of integers                    (int8_training.hpp)
//
// All plans give the same bits, except Int8Training, which has its own. Moments depend on the optimizer:
// AdamW has two per parameter, Sgd<Momentum::kNone> none.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/pass.hpp>

namespace ATTUNE_NAMESPACE {

/// The interface of a plan for Trainer: the storage of gradients, and an executor for kSequences sequences at
/// a time, with the members of BySequence's.
template <class Plan, class Model>
concept MemoryPlan = requires {
  typename Plan::template Gradients<Model>;
  Plan::template BatchExecutor<Model>::kSequences;
};

namespace detail {

/// A plan for this model. A wrong type is one error.
template <class Plan, class Model>
constexpr bool check_plan() {
  static_assert(
      MemoryPlan<Plan, Model>,
      "attune::Trainer: the fifth template argument is not a memory plan: use BySequence, Lockstep, "
      "UpdateInBackward, Int8Training or InSharedBuffers<buffers>");
  return MemoryPlan<Plan, Model>;
}
template <class Plan, class Model>
concept CheckedPlan = check_plan<Plan, Model>();

/// Whether a plan can add up the gradients of a batch. If not, one error says so.
template <bool keeps_gradients, int batch>
constexpr bool check_batch() {
  static_assert(Holds<(batch == 1 || keeps_gradients)>,
                "attune::Trainer: UpdateInBackward keeps no gradients to add up; use a batch of 1");
  return batch == 1 || keeps_gradients;
}

// The plan for an optimizer: the plan itself, unless it names another.
template <class Plan, class Optimizer>
struct PlanFor {
  using type = Plan;
};
template <class Plan, class Optimizer>
  requires requires { typename Plan::template With<Optimizer>; }
struct PlanFor<Plan, Optimizer> {
  using type = typename Plan::template With<Optimizer>;
};
template <class Plan, class Optimizer>
using PlanWith = typename PlanFor<Plan, Optimizer>::type;

/// Whether a plan adds up all gradients of a batch.
template <class Plan, class Model>
concept KeepsGradients = std::is_same_v < typename Plan::template Gradients<Model>,
typename Model::Parameters > ;
/// The base of executors: products read the parameters. An executor with weights of its own, which it makes
/// from the parameters, has these members itself.
struct ReadsParameters {
  /// The arithmetic for products of activations.
  using Products = FloatProducts;
  /// The weights that products read.
  static const auto& weights(const auto& parameters) { return parameters; }
  /// Makes these weights, if the parameters have changed. Returns kNotFinite if a parameter is not finite.
  static Status load(const auto& /*parameters*/) { return Status::kOk; }
  /// Marks these weights as outdated.
  static void invalidate() {}
};
/// Whether an executor has weights of its own.
template <class Executor>
concept OwnsWeights = !std::is_base_of_v<ReadsParameters, Executor>;
/// Whether the parameters of a state can be used; the weights that products read are then up to date.
Status load_weights(const auto& state, auto& executor) {
  const Status ready = state.ready();
  return ready == Status::kOk ? executor.load(state.parameters) : ready;
}
/// Whether the weights, the gradients, or any memory of a plan's trainers lie outside of them.
template <class Plan>
concept PlacesWeights = requires {
  Plan::working_weights();
};
template <class Plan>
concept PlacesGradients = requires {
  Plan::placed_gradients();
};
template <class Plan>
concept PlacesMemory = PlacesWeights<Plan> || PlacesGradients<Plan> || requires {
  Plan::buffers();
};
/// The context of a call in the plan's arithmetic.
template <class Model, class BatchExecutor, class Mask, class Slices = RunToCompletion>
constexpr auto context_in_plan(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices = {}) {
  return context_for<Model>(mask, slices).template with_products<typename BatchExecutor::Products>();
}

}  // namespace detail

/// One sequence at a time. The default plan of a Trainer.
struct BySequence {
  template <class Model>
  using Gradients = typename Model::Parameters;
  /// The set that tape and scratch are made for.
  template <class Model>
  using GradientSet = typename Model::Parameters;
  /// Computes one sequence, and keeps nothing.
  template <class Model>
  struct BatchExecutor : detail::ReadsParameters {
    /// The number of sequences computed at a time.
    static constexpr int kSequences = 1;
    static constexpr MemoryReport memory() { return {}; }
  };
};

namespace detail {

/// Whether trainers of a plan take one sequence at a time, keep all gradients, and have their memory in them.
template <class Plan, class Model>
concept TakesSequences =
    std::is_base_of_v<BySequence, Plan> && !PlacesMemory<Plan> && KeepsGradients<Plan, Model>;

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
