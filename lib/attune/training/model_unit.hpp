// A model in a source file of its own, behind plain arrays: the rest of a program includes this header, which
// costs no compile time, and is not compiled again when the model changes, nor the model when the rest does.
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

namespace attune::inline ATTUNE_ARITHMETIC {

/// A trainer behind plain arrays. `Sizes` has the scalars of a sequence's input and output, kInputs and
/// kOutputs, and kTargets of the type Target: floats, or classes. Inputs are ids where it has `using Input =
/// int`. One sequence a step, without clipping and masks; what else a product asks of its model is a
/// function of its own in the model's source.
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
  /// Its target, row by row.
  using Targets = Target[std::size_t{Sizes::kTargets}];
  /// What the model answers, row by row.
  using Outputs = float[std::size_t{Sizes::kOutputs}];
  /// The bytes of a training's state (training/state.hpp): to be stored behind a checksum.
  struct State {
    const void* bytes;  // the first
    std::size_t size;   // how many
  };

  /// Draws initial parameters, XavierUniform, and forgets all training.
  static void initialize(std::uint64_t seed);
  /// One optimizer step on one sequence, as Trainer::step.
  static StepResult<float> step(const Inputs& inputs, const Targets& targets, float learning_rate);
  /// Writes y for x, as Trainer::predict.
  static Status predict(const Inputs& inputs, Outputs& outputs);
  /// Between two steps, of the trainer itself: no copy.
  static State state();
  /// Resumes from such bytes, as Trainer::resume; kOtherState where there is another number of them.
  static Status resume(const State& stored);
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
