// A training loop for a PC: progress, validation, early stopping, the best parameters, Ctrl-C. Needs an
// operating system and a heap; never included by attune.hpp.
//
//   const auto run = attune::host::run_training(
//       trainer, {.steps = 4000, .validate_every = 200, .patience = 5},
//       [&](int step) { return trainer.step(batch.inputs, batch.targets, {.learning_rate = rate(step)}); },
//       [&] { return accuracy_on_unseen(trainer); });
//   trainer.load(*run.best);
//
// With .file it saves the run, and a killed run resumes from the file bit-identically.
#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/core/status.hpp>
#include <attune/host/interrupt.hpp>
#include <attune/host/training_progress.hpp>
#include <attune/host/whole_file.hpp>

namespace ATTUNE_NAMESPACE::host {

/// The length of a training, and its file.
struct TrainingOptions {
  int steps = 0;           // of the whole training
  int validate_every = 0;  // steps between validations; 0: validates only after the last step
  int patience = 0;        // consecutive validations without improvement before training ends; 0: unlimited
  bool terminal = false;   // progress overwrites its line; otherwise occasional lines
  TrainingProgress::Write write = write_to_standard_output;  // for progress; nullptr: none
  /// The run is saved there (whole_file.hpp), and resumes from an existing file. step(index) may then depend
  /// only on the index, the trainer's state and `beside`. A change of loss or data is not detected.
  std::string file = {};
  int save_every = 100;              // steps between saves; also saves after the last step
  std::span<std::byte> beside = {};  // your own bytes, saved with it: the position in the data, a generator
};

/// The reason that training ended.
enum class TrainingEnd {
  kAllSteps = 0,     // all requested steps are done
  kNoPatience = 1,   // the accuracy stopped improving
  kInterrupted = 2,  // Ctrl-C
  kRefused = 3,      // a step returned an error
  kNotSaved = 4,     // the file could not be written, or belongs to another training
};

/// The result of a validation.
struct Validation {
  int step;         // steps before the validation
  double accuracy;  // from the caller's function
};

/// The result of a run. `best` holds the parameters of the best validation (the first of equals), or the last
/// parameters without validation.
template <class Parameters>
struct TrainingRun {
  TrainingEnd end = TrainingEnd::kAllSteps;  // why it ended
  Status status = Status::kOk;               // of the last step, or of the file if that ended training
  int steps = 0;                             // steps taken
  double seconds = 0;                        // of all calls that worked on it
  std::vector<float> losses = {};            // of every step
  std::vector<Validation> validations = {};  // in order
  int best_step = 0;                         // steps before `best` was found
  double best_accuracy = 0;                  // of `best`
  std::unique_ptr<Parameters> best = {};     // never empty
};

namespace detail {

/// A trainer of several processes, which end together and share files (distributed_trainer.hpp).
template <class Trainer>
concept OfSeveralProcesses = requires(Trainer& trainer) {
  trainer.ranks();
};

/// A run in a file: the trainer's state, then this record, `beside`, and lists.
template <class Parameters>
struct RunRecord {
  std::int32_t steps, best_step, losses, validations;
  std::uint32_t beside, unused;
  double best_accuracy, seconds;
  Parameters best;
};

template <class Trainer, class Parameters>
Status save_run(const TrainingOptions& options, Trainer& trainer, const TrainingRun<Parameters>& run,
                double seconds) {
  const auto record = std::make_unique<RunRecord<Parameters>>();
  record->steps = run.steps;
  record->best_step = run.best_step;
  record->losses = static_cast<std::int32_t>(run.losses.size());
  record->validations = static_cast<std::int32_t>(run.validations.size());
  record->beside = static_cast<std::uint32_t>(options.beside.size());
  record->best_accuracy = run.best_accuracy;
  record->seconds = seconds;
  record->best = *run.best;
  const std::initializer_list<std::span<const std::byte>> parts{
      std::as_bytes(std::span(&trainer.state(), 1)), std::as_bytes(std::span(record.get(), 1)),
      options.beside, std::as_bytes(std::span(run.losses)), std::as_bytes(std::span(run.validations))};
  if constexpr (OfSeveralProcesses<Trainer>) {
    return trainer.save_run(options.file, Trainer::State::kFingerprint, parts);
  } else {
    return save_whole_file(options.file, Trainer::State::kFingerprint, parts);
  }
}

/// Returns kOk if the run resumes from the file, kNothingStored if there is none. On other errors nothing
/// changes.
template <class Trainer, class Parameters>
Status load_run(const TrainingOptions& options, Trainer& trainer, TrainingRun<Parameters>& run) {
  using State = typename Trainer::State;
  std::vector<std::byte> bytes;
  Status status;
  if constexpr (OfSeveralProcesses<Trainer>) {
    status = trainer.load_run(options.file, State::kFingerprint, bytes);
  } else {
    status = load_whole_file(options.file, State::kFingerprint, bytes);
  }
  if (status != Status::kOk) return status;
  const auto state = std::make_unique<State>();
  const auto record = std::make_unique<RunRecord<Parameters>>();
  if (bytes.size() < sizeof *state + sizeof *record) return Status::kUnreadable;
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t size) {
    std::memcpy(to, bytes.data() + at, size);
    at += size;
  };
  take(state.get(), sizeof *state);
  take(record.get(), sizeof *record);
  if (record->beside != options.beside.size() || record->beside > bytes.size() - at)
    return Status::kOtherState;
  const std::size_t rest = bytes.size() - at - record->beside;
  const auto counts = [rest](std::int32_t count, std::size_t size) {  // whether the file is large enough
    return count >= 0 && static_cast<std::size_t>(count) <= rest / size;
  };
  if (!counts(record->losses, sizeof(float)) || !counts(record->validations, sizeof(Validation))) {
    return Status::kOtherState;
  }
  const auto losses = static_cast<std::size_t>(record->losses),
             validations = static_cast<std::size_t>(record->validations);
  if (rest != losses * sizeof(float) + validations * sizeof(Validation)) return Status::kOtherState;
  if (const Status resumed = trainer.resume(*state); resumed != Status::kOk) return resumed;
  if (!options.beside.empty()) take(options.beside.data(), record->beside);
  run.losses.resize(losses);
  run.validations.resize(validations);
  if (losses > 0) take(run.losses.data(), losses * sizeof(float));
  if (validations > 0) take(run.validations.data(), validations * sizeof(Validation));
  run.steps = record->steps;
  run.best_step = record->best_step;
  run.best_accuracy = record->best_accuracy;
  run.seconds = record->seconds;
  *run.best = record->best;
  return Status::kOk;
}

}  // namespace detail

/// No validation: the last parameters are the best.
struct NoValidation {
  /// Never called: there is no validation.
  double operator()() const { return 0; }
};

namespace detail {

/// A run in progress.
template <class Trainer, class Validate>
class Runner {
 public:
  using Parameters = std::remove_cvref_t<decltype(std::declval<Trainer&>().parameters())>;

  Runner(Trainer& trainer, const TrainingOptions& options, Validate& validate)
      : trainer_(trainer),
        options_(options),
        validate_(validate),
        progress_(options.steps, options.terminal, options.write),
        patience_(options.patience) {
    run_.best = std::make_unique<Parameters>(trainer.parameters());
    if (!options.file.empty()) load();
    saved_ = run_.steps > 0;
  }

  [[nodiscard]] bool has_steps_left() const {
    return run_.steps < options_.steps && run_.end == TrainingEnd::kAllSteps;
  }
  /// Takes one step, then validates and saves if due.
  template <class Step>
  void take_step(const Step& step) {
    const auto result = step(run_.steps);
    if (run_.status = result.status; run_.status != Status::kOk) {
      run_.end = TrainingEnd::kRefused;
      return;
    }
    ++run_.steps;
    saved_ = false;
    run_.losses.push_back(static_cast<float>(result.loss));
    if constexpr (kValidates) {
      if (options_.validate_every > 0 && run_.steps % options_.validate_every == 0) {
        validate();
        if (options_.patience > 0 && patience_ == 0) run_.end = TrainingEnd::kNoPatience;
      }
    }
    progress_.step_done(run_.losses.back());
    if (options_.save_every > 0 && run_.steps % options_.save_every == 0) save();
    if constexpr (!OfSeveralProcesses<Trainer>) {
      if (run_.end == TrainingEnd::kAllSteps && interrupt_.requested()) run_.end = TrainingEnd::kInterrupted;
    }
  }
  /// Validates and saves pending results, and returns the run.
  TrainingRun<Parameters> finish() {
    if (run_.end == TrainingEnd::kInterrupted) save();  // a resumed run has not validated here
    if constexpr (kValidates) {
      if (run_.validations.empty() || run_.validations.back().step != run_.steps) validate();
    } else {
      *run_.best = trainer_.parameters();
      run_.best_step = run_.steps;
    }
    if (run_.end == TrainingEnd::kAllSteps || run_.end == TrainingEnd::kNoPatience) {
      saved_ = false;
      save();
    }
    run_.seconds = progress_.seconds();
    progress_.end(last_words());
    return std::move(run_);
  }

 private:
  static constexpr bool kValidates = !std::is_same_v<std::remove_cvref_t<Validate>, NoValidation>;
  static constexpr bool kHasState = requires(Trainer & trainer) { trainer.state(); };

  void end_unsaved(Status status) {
    run_.status = status;
    run_.end = TrainingEnd::kNotSaved;
  }
  void load() {
    if constexpr (kHasState) {
      const Status status = load_run(options_, trainer_, run_);
      for (const Validation& validation : run_.validations) patience_ -= validation.step > run_.best_step;
      if (options_.patience > 0 && patience_ <= 0) run_.end = TrainingEnd::kNoPatience;
      if (status != Status::kOk && status != Status::kNothingStored) end_unsaved(status);
      progress_.resume(run_.losses, run_.seconds);
    } else {
      end_unsaved(Status::kOtherState);  // this trainer has none
    }
  }
  void save() {
    if constexpr (kHasState) {
      if (options_.file.empty() || saved_) return;
      saved_ = true;
      const Status status = save_run(options_, trainer_, run_, progress_.seconds());
      if (status != Status::kOk) end_unsaved(status);
    }
  }
  void validate() {
    const double accuracy = static_cast<double>(validate_());
    const bool first = run_.validations.empty() || run_.best_accuracy != run_.best_accuracy;  // NaN
    if (first || accuracy > run_.best_accuracy) {
      run_.best_accuracy = accuracy;
      run_.best_step = run_.steps;
      *run_.best = trainer_.parameters();
      patience_ = options_.patience;
    } else {
      --patience_;
    }
    run_.validations.push_back({run_.steps, accuracy});
    progress_.validated(accuracy);
  }
  [[nodiscard]] std::string last_words() const {
    const std::string steps = std::to_string(run_.steps) + " steps";
    switch (run_.end) {
      case TrainingEnd::kAllSteps:
        return {};
      case TrainingEnd::kNoPatience:
        return "no better accuracy since step " + std::to_string(run_.best_step) + ": stopped after " + steps;
      case TrainingEnd::kInterrupted:
        return "interrupted after " + steps + "; again: ends the program at once";
      case TrainingEnd::kNotSaved:
        return options_.file + ": " + message(run_.status);
      case TrainingEnd::kRefused:
        return "stopped after " + steps + ": " + message(run_.status);
    }
    return {};
  }

  Trainer& trainer_;
  const TrainingOptions& options_;
  Validate& validate_;
  TrainingRun<Parameters> run_;
  const Interrupt interrupt_;
  TrainingProgress progress_;
  int patience_;
  bool saved_ = false;
};

}  // namespace detail

/// Takes up to options.steps steps. `step(index)` takes one step with `trainer` and returns its StepResult.
/// `validate()` returns an accuracy, where larger is better; the display expects [0, 1]. It validates once
/// more at the end, also after Ctrl-C, if steps were taken since. A refused step ends training, with the
/// state before it.
///
/// With options.file, a run that ended in any way resumes from its last save: call it again with the same
/// arguments. With several ranks (distributed_trainer.hpp), every rank calls it, and `step` and `validate`
/// must do the same on all. Ctrl-C goes to the program that started them.
template <class Trainer, class Step, class Validate = NoValidation>
auto run_training(Trainer& trainer, const TrainingOptions& options, Step&& step, Validate&& validate = {}) {
  detail::Runner<Trainer, std::remove_reference_t<Validate>> runner(trainer, options, validate);
  while (runner.has_steps_left()) runner.take_step(step);
  return runner.finish();
}

}  // namespace ATTUNE_NAMESPACE::host
