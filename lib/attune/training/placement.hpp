// Parts of a trainer in memories of their own: for controllers with a small fast RAM and a large slow one.
//
//   static attune::SharedBuffers<Model> buffers;         // tape and scratch         in fast RAM
//   static attune::WorkingWeights<Model> weights;        // read by products         in fast RAM
//   static attune::PlacedGradients<Model> gradients;     // gradients of a batch     in fast RAM
//   [[gnu::section(".psram")]] static attune::Trainer<   // parameters and moments   in slow RAM
//       Model, attune::CrossEntropy<>, attune::AdamW, 32,
//       attune::WeightsIn<weights, attune::GradientsIn<gradients, attune::InSharedBuffers<buffers>>>>
//       trainer;
//
// Each of the three may be left out: the trainer then has the part. No placement changes a bit or a state.
// A trainer with placed weights or gradients has no copies; its state() has.
// Memory may hold anything before initialize(), load() or resume(), but a SharedBuffers must be zero.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/training/int8_training.hpp>
#include <attune/training/plan.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// A copy of the parameters, for plans whose products read the parameters.
template <class Model>
class CopiedWeights {
 public:
  using Products = FloatProducts;
  [[nodiscard]] const auto& weights(const auto& /*parameters*/) const { return weights_; }
  static void invalidate() {}
  Status load(const auto& parameters) {
    copy_parameters(parameters, weights_);
    return Status::kOk;
  }

 private:
  typename Model::Parameters weights_;
};
template <class Model, class Executor>
using WeightsFor = std::conditional_t<OwnsWeights<Executor>, Executor, CopiedWeights<Model>>;

/// The plan inside of another one. A plan with lanes is an error.
template <class Plan>
using PlanInside = decltype(plan_by_sequence<Plan>());

}  // namespace detail

/// The weights that the products of a trainer read: a copy of its parameters, or the 8-bit integers of `Plan`
/// = Int8Training. Each update makes them anew. Trainers of one model may share them, and then each turn
/// does. They know a trainer by its address, so they have no copies.
template <class Model, class Plan = BySequence>
class WorkingWeights : public detail::WeightsFor<Model, typename Plan::template BatchExecutor<Model>>,
                       detail::NotCopied {
  using Base = detail::WeightsFor<Model, typename Plan::template BatchExecutor<Model>>;

 public:
  /// Makes the weights of `parameters`, unless they are. Returns kNotFinite if one cannot be an integer.
  Status load(const auto& parameters) {
    if (of_ == &parameters) return Status::kOk;
    Base::invalidate();
    const Status status = Base::load(parameters);
    of_ = status == Status::kOk ? &parameters : nullptr;
    return status;
  }
  /// Marks the weights as outdated: parameters have changed.
  void invalidate() { of_ = nullptr; }

 private:
  const void* of_;  // whose they are
};

/// The gradients of a trainer that adds up batches. Trainers of one model may share them, one batch at a
/// time: the others return kUnderWay until update() or discard(). One that is initialized takes them. If that
/// interrupts an update in slices, the other trainer returns kNotInitialized until it starts again. They know
/// a trainer by its address, so they have no copies.
template <class Model>
struct PlacedGradients : detail::NotCopied {
  typename Model::Parameters values;  // the sums
  const void* of;                     // the trainer whose batch they have
};

namespace detail {

// The executor of a plan with weights in an object of their own.
template <auto& shared>
struct ExecutorWithWeights {
  static constexpr int kSequences = 1;
  using Products = typename std::remove_cvref_t<decltype(shared)>::Products;
  static constexpr MemoryReport memory() { return {}; }
  static const auto& weights(const auto& parameters) { return shared.weights(parameters); }
  static void invalidate() { shared.invalidate(); }
  static Status load(const auto& parameters) { return shared.load(parameters); }
};

template <class Weights, class Model, class Plan>
constexpr bool check_working_weights() {
  using Needed = WeightsFor<Model, typename Plan::template BatchExecutor<Model>>;
  static_assert(Holds<std::is_base_of_v<Needed, Weights>>,
                "attune::WeightsIn: the weights are those of another model or plan; declare "
                "WorkingWeights<Model>, or WorkingWeights<Model, Int8Training> for training in integers");
  return std::is_base_of_v<Needed, Weights>;
}
template <class Gradients, class Model, class Plan>
constexpr bool check_placed_gradients() {
  constexpr bool kKept = KeepsGradients<Plan, Model>;
  constexpr bool kFit = std::is_same_v<Gradients, PlacedGradients<Model>>;
  static_assert(Holds<kKept>,
                "attune::GradientsIn: UpdateInBackward keeps no gradients to place; leave out "
                "GradientsIn, or the plan inside it");
  static_assert(Holds<(kFit || !kKept)>,
                "attune::GradientsIn: the gradients are those of another model; declare "
                "PlacedGradients<Model>");
  return kKept && kFit;
}

// A trainer's own gradients, or a reference to placed ones. free_for() is whether a trainer with so many
// sequences in its batch may go on with it.
template <class Plan, class Model>
class GradientsOfTrainer {
 public:
  auto& values() { return values_; }
  [[nodiscard]] const auto& values() const { return values_; }
  static constexpr bool free_for(const void*, int) { return true; }
  static constexpr void give_to(const void*) {}

 private:
  typename Plan::template Gradients<Model> values_;
};
template <class Plan, class Model>
  requires std::is_same_v<std::remove_cvref_t<decltype(Plan::placed_gradients())>, PlacedGradients<Model>>
class GradientsOfTrainer<Plan, Model> {
 public:
  static auto& values() { return Plan::placed_gradients().values; }
  static bool free_for(const void* trainer, int sequences) {
    const void* const of = Plan::placed_gradients().of;
    return of == trainer || (of == nullptr && sequences == 0);
  }
  static void give_to(const void* trainer) { Plan::placed_gradients().of = trainer; }
};

// A member of trainers whose copies are an error, because placed weights and gradients know a trainer by its
// address; empty for others.
template <class Plan>
struct CopiesOfTrainer {};
template <class Plan>
  requires(PlacesWeights<Plan> || PlacesGradients<Plan>)
struct CopiesOfTrainer<Plan> {
  CopiesOfTrainer() = default;
  CopiesOfTrainer(const CopiesOfTrainer&) { refuse(); }
  CopiesOfTrainer& operator=(const CopiesOfTrainer&) {
    refuse();
    return *this;
  }

 private:
  static constexpr void refuse() {
    static_assert(Holds<(sizeof(Plan) == 0)>,
                  "attune::Trainer: placed weights and gradients belong to one trainer, not to its copies; "
                  "copy its state(), and resume() from that");
  }
};

}  // namespace detail

/// `Plan` with its weights in an object of their own, a WorkingWeights that lives as long as the program.
template <auto& shared, class Plan = BySequence>
struct WeightsIn : detail::PlanInside<Plan> {
  /// The plan for an optimizer.
  template <class Optimizer>
  using With = WeightsIn<shared, detail::PlanWith<detail::PlanInside<Plan>, Optimizer>>;
  /// The weights.
  static auto& working_weights() { return shared; }
  /// Reads and makes them.
  template <class Model>
  using BatchExecutor =
      std::conditional_t<detail::check_working_weights<std::remove_cvref_t<decltype(shared)>, Model, Plan>(),
                         detail::ExecutorWithWeights<shared>, typename Plan::template BatchExecutor<Model>>;
};

/// `Plan` with its gradients in an object of their own, a PlacedGradients that lives as long as the program.
template <auto& shared, class Plan = BySequence>
struct GradientsIn : detail::PlanInside<Plan> {
  /// The plan for an optimizer.
  template <class Optimizer>
  using With = GradientsIn<shared, detail::PlanWith<detail::PlanInside<Plan>, Optimizer>>;
  /// The gradients.
  static auto& placed_gradients() { return shared; }
  /// The set of gradients.
  template <class Model>
  using Gradients =
      std::conditional_t<detail::check_placed_gradients<std::remove_cvref_t<decltype(shared)>, Model, Plan>(),
                         typename Model::Parameters, typename Plan::template Gradients<Model>>;
};

}  // namespace ATTUNE_NAMESPACE
