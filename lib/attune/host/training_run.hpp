// A training loop for a PC: progress, validation, early stopping, the best parameters, Ctrl-C. Needs an
// operating system and a heap; never included by attune.hpp.
//
//   const auto run = attune::host::run_training(
//       trainer, {.steps = 4000, .validate_every = 200, .patience = 5},
//       [&](int step) { return trainer.step(batch.inputs, batch.targets, {.learning_rate = rate(step)}); },
//       [&] { return accuracy_on_unseen(trainer); });
//   trainer.load(*run.best);
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/core/status.hpp>
#include <attune/host/interrupt.hpp>
#include <attune/host/training_progress.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host {

struct TrainingOptions {
  int steps = 0;
  int validate_every = 0;  // steps from one validation to the next; 0: only after the last step
  int patience = 0;        // validations in a row without a better accuracy that end training; 0: none do
  bool terminal = false;   // progress overwrites its line; otherwise it is a line now and then
  TrainingProgress::Write write = write_to_standard_output;  // of progress; nullptr: none
};

enum class TrainingEnd {
  kAllSteps,
  kNoPatience,   // the accuracy did not become better any more
  kInterrupted,  // Ctrl-C
  kRefused,      // a step was not kOk
};

struct Validation {
  int step;  // steps that had been taken
  double accuracy;
};

/// What happened. `best` are the parameters of the best validation (the first of equals); the last ones
/// without validation.
template <class Parameters>
struct TrainingRun {
  TrainingEnd end = TrainingEnd::kAllSteps;
  Status status = Status::kOk;  // of the last step
  int steps = 0;                // that were taken
  double seconds = 0;
  std::vector<float> losses = {};  // of every step
  std::vector<Validation> validations = {};
  int best_step = 0;
  double best_accuracy = 0;
  std::unique_ptr<Parameters> best = {};  // never empty
};

/// No validation: the last parameters are the best.
struct NoValidation {
  double operator()() const { return 0; }
};

/// Takes up to options.steps steps. `step(index)` takes one with `trainer` and gives its StepResult;
/// `validate()` gives an accuracy, in [0, 1] for the display, larger for better. It validates once more at
/// the end, also after Ctrl-C, if steps were taken since. A step that is refused ends training; what it left
/// unchanged counts.
template <class Trainer, class Step, class Validate = NoValidation>
auto run_training(const Trainer& trainer, const TrainingOptions& options, Step&& step,
                  Validate&& validate = {}) {
  constexpr bool kValidates = !std::is_same_v<std::remove_cvref_t<Validate>, NoValidation>;
  using Parameters = std::remove_cvref_t<decltype(trainer.parameters())>;
  TrainingRun<Parameters> run;
  run.best = std::make_unique<Parameters>(trainer.parameters());
  run.losses.reserve(static_cast<std::size_t>(options.steps > 0 ? options.steps : 0));
  const Interrupt interrupt;
  TrainingProgress progress(options.steps, options.terminal, options.write);
  int patience = options.patience;

  [[maybe_unused]] const auto validate_now = [&] {
    const double accuracy = static_cast<double>(validate());
    const bool first =
        run.validations.empty() || run.best_accuracy != run.best_accuracy;  // NaN is no accuracy
    if (first || accuracy > run.best_accuracy) {
      run.best_accuracy = accuracy;
      run.best_step = run.steps;
      *run.best = trainer.parameters();
      patience = options.patience;
    } else {
      --patience;
    }
    run.validations.push_back({run.steps, accuracy});
    progress.validated(accuracy);
  };

  while (run.steps < options.steps && run.end == TrainingEnd::kAllSteps) {
    const auto result = step(run.steps);
    if (run.status = result.status; run.status != Status::kOk) {
      run.end = TrainingEnd::kRefused;
      break;
    }
    ++run.steps;
    run.losses.push_back(static_cast<float>(result.loss));
    if constexpr (kValidates) {
      if (options.validate_every > 0 && run.steps % options.validate_every == 0) {
        validate_now();
        if (options.patience > 0 && patience == 0) run.end = TrainingEnd::kNoPatience;
      }
    }
    progress.step_done(run.losses.back());
    if (interrupt.requested()) run.end = TrainingEnd::kInterrupted;
  }
  if constexpr (kValidates) {
    if (run.validations.empty() || run.validations.back().step != run.steps) validate_now();
  } else {
    *run.best = trainer.parameters();
    run.best_step = run.steps;
  }
  run.seconds = progress.seconds();

  const auto said = [](const char* before, int number, const std::string& behind) {
    std::string text = before;
    return (text += std::to_string(number)) += behind;
  };
  switch (run.end) {
    case TrainingEnd::kAllSteps:
      progress.end({});
      break;
    case TrainingEnd::kNoPatience:
      progress.end(said("no better accuracy since step ", run.best_step,
                        said(": stopped after ", run.steps, " steps")));
      break;
    case TrainingEnd::kInterrupted:
      progress.end(said("interrupted after ", run.steps, " steps; once more ends the program at once"));
      break;
    case TrainingEnd::kRefused:
      progress.end(said("stopped after ", run.steps, std::string(" steps: ") + message(run.status)));
      break;
  }
  return run;
}
}  // namespace attune::inline ATTUNE_ARITHMETIC::host
