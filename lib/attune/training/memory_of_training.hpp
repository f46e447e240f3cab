// RAM of a training, part by part: in total, and for one layer of a model.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/training/placement.hpp>
#include <attune/training/shared_buffers.hpp>
#include <attune/training/state.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// RAM to train `Model` under a plan, without inputs and counters.
template <class Model, class Optimizer, class Plan>
constexpr MemoryReport memory_of_training() {
  using State = TrainingState<Model, Optimizer>;
  using Work = TrainerBuffersOf<Plan, Model>;
  MemoryReport report{.parameters = sizeof(typename State::Parameters),
                      .gradients = kBytes<GradientsOfTrainer<Plan, Model>>,
                      .moments = kBytes<typename State::Moments>,
                      .tape = Work::kTapeBytes,
                      .scratch = Work::kScratchBytes};
  constexpr MemoryReport kExecutor = Plan::template BatchExecutor<Model>::memory();
  report.parameters += kExecutor.parameters;
  report.gradients += kExecutor.gradients;
  report.tape += kExecutor.tape;
  report.scratch += kExecutor.scratch;
  return report;
}

/// RAM of one layer: its own tape, and the scratch that it alone would need.
template <class Layer, class Optimizer, class Plan>
constexpr MemoryReport memory_of_layer() {
  using State = TrainingState<Layer, Optimizer>;
  using GradientSet = typename Plan::template GradientSet<Layer>;
  MemoryReport report{.tape = kBytes<TapeOf<Layer, GradientSet>>,
                      .scratch = kBytes<EitherScratch<Layer, GradientSet>>};
  if constexpr (!std::is_empty_v<typename State::Parameters>) {
    report.parameters = sizeof(typename State::Parameters);
    report.gradients = sizeof(typename Plan::template Gradients<Layer>);
    report.moments = kBytes<typename State::Moments>;
  }
  return report;
}

}  // namespace ATTUNE_NAMESPACE::detail
