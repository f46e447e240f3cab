// A model in its own source file, behind plain arrays. Including this header costs the rest of a program no
// compile time. A change of the model recompiles only that file, and a change elsewhere does not recompile
// the model.
//
//   // keyword.hpp: included wherever the model is used
//   struct Keyword {
//     using Target = int;
//     static constexpr int kInputs = 40 * 16, kTargets = 1, kOutputs = 12;
//   };
//   extern template class attune::ModelUnit<Keyword>;
//
//   // keyword.cpp: all that includes attune.hpp
//   static attune::Trainer<Model, attune::CrossEntropy<>> trainer;
//   ATTUNE_MODEL_UNIT(Keyword, trainer, .weight_decay = 0.01f)
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/core/status.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

/// A trainer behind plain arrays. `Sizes` has kInputs and kOutputs, the scalars of a sequence's input and
/// output. It also has kTargets, the number of targets of the type Target: floats, or classes. Inputs are ids
/// if it has `using Input = int`. A step takes one sequence, without clipping or masks. Write other calls as
/// functions of your own in the model's source file.
template <class Sizes>
class ModelUnit {
  template <class S>
  struct InputOf {
    using type = float;
  };
  template <class S>
    requires requires { typename S::Input; }
  struct InputOf<S> {
    using type = typename S::Input;
  };

 public:
  using Input = typename InputOf<Sizes>::type;
  /// The target of one sequence.
  using Target = typename Sizes::Target;
  /// One sequence, row by row.
  using Inputs = Input[std::size_t{Sizes::kInputs}];
  /// The targets of one sequence, row by row.
  using Targets = Target[std::size_t{Sizes::kTargets}];
  /// The outputs of the model, row by row.
  using Outputs = float[std::size_t{Sizes::kOutputs}];
  /// The bytes of a training's state (training/state.hpp). Store them with a checksum.
  struct State {
    const void* bytes;  // first byte
    std::size_t size;   // number of bytes
  };

  /// Draws initial parameters by XavierUniform, and forgets all training.
  static void initialize(std::uint64_t seed);
  /// One optimizer step on one sequence, as Trainer::step.
  static StepResult<float> step(const Inputs& inputs, const Targets& targets, float learning_rate);
  /// Writes y for x, as Trainer::predict.
  static Status predict(const Inputs& inputs, Outputs& outputs);
  /// The trainer's own state, not a copy. Call it between steps.
  static State state();
  /// Resumes from such bytes, as Trainer::resume. Returns kOtherState if their number differs.
  static Status resume(const State& stored);
};

}  // namespace ATTUNE_NAMESPACE
