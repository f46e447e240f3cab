// Memory plans: what a Trainer spends RAM on, chosen by type.
//
//   Streaming          one sequence at a time, gradients added up over the batch      (this header)
//   Lockstep           as many sequences at once as a packet has lanes: more RAM, more speed on a PC
//   UpdateInBackward   a batch of one, no gradients, where that takes less: the least RAM
//   Int8Training       one sequence at a time, products of integers                    (int8_training.hpp)
//
// Every plan trains to the same bits, but for Int8Training, which has its own. What optimizers keep is their
// type's choice: AdamW has two moments a parameter, Sgd<Momentum::kNone> none.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// What a Trainer asks a plan for: the storage of gradients, and a workspace that takes kSequences sequences
/// at a time.
template <class Plan, class Model>
concept MemoryPlan = requires {
  typename Plan::template Gradients<Model>;
  Plan::template Workspace<Model>::kSequences;
};

namespace detail {

/// A plan of such a model. A wrong type is one error.
template <class Plan, class Model>
constexpr bool check_plan() {
  static_assert(MemoryPlan<Plan, Model>,
                "attune::Trainer: what stands in the place of the plan is none; it comes behind the batch: "
                "Streaming, Lockstep, UpdateInBackward, Int8Training or InWorkspace<workspace>");
  return MemoryPlan<Plan, Model>;
}
template <class Plan, class Model>
concept CheckedPlan = check_plan<Plan, Model>();

}  // namespace detail

/// One sequence at a time. The plan of a Trainer unless another is named.
struct Streaming {
  template <class Model>
  using Gradients = typename Model::Parameters;
  template <class Model>
  struct Workspace {
    /// Sequences that are computed at a time.
    static constexpr int kSequences = 1;
    static constexpr MemoryReport memory() { return {}; }
  };
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
