// What a device does where labels may be wrong: takes whose label the base finds impossible are left out,
// some takes are held out, and the best of what was learned is kept (attune/training/guarded_training.hpp).
#pragma once

#include "methods.hpp"

namespace personalise {

using attune::Status;

/// The take of a digit that comes in a step: over kTakesOfDigit steps, all of them.
inline int take_of(int step, int digit) { return digit * kTakesOfDigit + (step + digit) % kTakesOfDigit; }

template <class Trainer>
class Doubts {
 public:
  /// Chooses takes by what `trainer`, which is the base still, says of them. `guards`: one take of five is
  /// held out, and the best of what is learned is kept.
  Status begin(Trainer& trainer, const Recordings& recordings, bool guards) {
    learned_ = held_out_ = 0;
    for (int step = 0; step < kTakesOfDigit; ++step) {
      for (int digit = 0; digit < kDigits; ++digit) {
        const int index = take_of(step, digit);
        const Recording take = recordings.take(index);
        if (const Status status = classify(trainer, take); status != Status::kOk) return status;
        if (!attune::is_plausible(logits_, take.digit)) continue;
        (guards && step == 0 ? out_[held_out_++] : in_[learned_++]) = static_cast<unsigned char>(index);
      }
    }
    if (guards && held_out_ == 0) learned_ = 0;
    if (!guards || learned_ == 0) return Status::kOk;
    if (const Status status = evaluate(trainer, recordings); status != Status::kOk) return status;
    return guard_.begin(trainer, of_held_out_, of_probe_);
  }
  /// Whether there are takes to learn from.
  [[nodiscard]] bool learns() const { return learned_ > 0; }
  /// The take that comes in a step.
  [[nodiscard]] int take_in(int step, int digit) const { return in_[(step * kDigits + digit) % learned_]; }
  /// Looks at what was learned after 10, 25, 50 and 100 steps. A step that was refused, because numbers are
  /// not finite, is one that diverges: the guard rolls back in the end.
  Status mark(Trainer& trainer, const Recordings& recordings, int steps, Status of_step) {
    if (of_step == Status::kNotFinite) return Status::kOk;
    if (of_step != Status::kOk || (steps != 10 && steps != 25 && steps != 50 && steps != 100)) return of_step;
    if (const Status status = evaluate(trainer, recordings); status != Status::kOk) return status;
    return guard_.mark(trainer, of_held_out_, of_probe_).status;
  }
  Status end(Trainer& trainer) const { return learns() ? guard_.finish(trainer) : Status::kOk; }

 private:
  Status classify(Trainer& trainer, const Recording& recording) {
    load(recording, example_);
    return trainer.predict(example_.tokens, logits_, example_.padding);
  }
  Status evaluate(Trainer& trainer, const Recordings& recordings) {
    of_held_out_ = of_probe_ = {};
    Status status = Status::kOk;
    for (int i = 0; i < held_out_ && status == Status::kOk; ++i) {
      status = add(trainer, recordings.take(out_[i]), of_held_out_);
    }
    for (const Recording& take : recordings.of(Use::kOthersTakes)) {
      if (status == Status::kOk) status = add(trainer, take, of_probe_);
    }
    return status;
  }
  Status add(Trainer& trainer, const Recording& recording, attune::Evaluation<>& evaluation) {
    const Status status = classify(trainer, recording);
    return status == Status::kOk ? evaluation.add(logits_, recording.digit) : status;
  }

  attune::GuardedTraining<Trainer> guard_{};
  attune::Evaluation<> of_held_out_{}, of_probe_{};
  unsigned char in_[kNumTakes]{}, out_[kDigits]{};  // which takes are learned from, and held out
  int learned_ = 0, held_out_ = 0;
  Example example_{};
  Logits logits_{};
};

}  // namespace personalise
