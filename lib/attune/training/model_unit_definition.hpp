// The model's side of a ModelUnit (model_unit.hpp).
#pragma once

#include <cstring>
#include <type_traits>

#include <attune/core/initialize.hpp>
#include <attune/core/rng.hpp>
#include <attune/training/model_unit.hpp>

/// Defines attune::ModelUnit<Sizes> from a Trainer with a batch of one. Use it at global scope, once in a
/// program. Further arguments are options of the optimizer besides the learning rate: `.weight_decay =
/// 0.01f`.
#define ATTUNE_MODEL_UNIT(Sizes, unit_trainer, ...)                     \
  template <>                                                           \
  struct attune::detail::UnitOf<Sizes> {                                \
    static constexpr auto& kTrainer = unit_trainer;                     \
    static constexpr auto options_at(float rate) {                      \
      using Options = std::remove_cvref_t<decltype(kTrainer)>::Options; \
      return Options{.learning_rate = rate __VA_OPT__(, ) __VA_ARGS__}; \
    }                                                                   \
  };                                                                    \
  template class attune::ModelUnit<Sizes>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Specialized by ATTUNE_MODEL_UNIT.
template <class Sizes>
struct UnitOf;

}  // namespace detail

template <class Sizes>
void ModelUnit<Sizes>::initialize(std::uint64_t seed) {
  detail::UnitOf<Sizes>::kTrainer.initialize(XavierUniform{}, Rng{seed});
}

template <class Sizes>
StepResult<float> ModelUnit<Sizes>::step(const Inputs& inputs, const Targets& targets, float learning_rate) {
  using Unit = detail::UnitOf<Sizes>;
  return Unit::kTrainer.step(inputs, targets, Unit::options_at(learning_rate));
}

template <class Sizes>
Status ModelUnit<Sizes>::predict(const Inputs& inputs, Outputs& outputs) {
  return detail::UnitOf<Sizes>::kTrainer.predict(inputs, outputs);
}

template <class Sizes>
typename ModelUnit<Sizes>::State ModelUnit<Sizes>::state() {
  const auto& state = detail::UnitOf<Sizes>::kTrainer.state();
  return {&state, sizeof state};
}

template <class Sizes>
Status ModelUnit<Sizes>::resume(const State& stored) {
  auto& trainer = detail::UnitOf<Sizes>::kTrainer;
  using TrainersState = std::remove_cvref_t<decltype(trainer.state())>;
  if (stored.size != sizeof(TrainersState)) return Status::kOtherState;
  const auto* state = static_cast<const TrainersState*>(stored.bytes);
  return trainer.resume(*state);
}

}  // namespace ATTUNE_NAMESPACE
