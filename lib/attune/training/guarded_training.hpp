// A guard over training in the field, where labels, recordings or options may be wrong. It keeps the best
// parameters so far, by the loss on examples that are held out, refuses parameters that forget a probe of
// examples from the factory, and rolls back.
//
//   static attune::GuardedTraining<Trainer> guard;               // the parameters once more, and a few words
//   attune::Evaluation<> held_out, probe;                         // of trainer.predict() on both sets
//   guard.begin(trainer, held_out, probe);
//   guard.mark(trainer, held_out, probe);                         // evaluated again, every few steps
//   guard.finish(trainer);                                        // the best of all marks
//
// A filter comes before: is_plausible(logits, label) says whether the model finds an example's label
// possible.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/simd/elementary.hpp>
#include <attune/training/cross_entropy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Cross-entropy and accuracy over a set of examples.
template <class ScalarType = float>
struct Evaluation {
  using Scalar = ScalarType;
  Scalar loss_sum = 0;  // infinite where an output is not a number
  int right = 0;        // rows whose largest output is the target's, alone
  int count = 0;        // rows

  /// Adds the outputs of an example, logits[rows, classes], with the class of each row; a row whose target is
  /// ignored (−100) does not count. kInvalidTarget: nothing is added.
  template <class Logits>
  Status add(const Logits& logits_matrix, Ids<CrossEntropy<>::kRowsOf<Logits>> targets) {
    const auto logits = dense_view(logits_matrix);
    constexpr int kRows = decltype(logits)::rows, kClasses = decltype(logits)::cols;
    Tensor<Scalar, kRows, 1> losses;
    const Status status = CrossEntropy<>::forward_rows(logits, targets, losses);
    if (status != Status::kOk) return status;
    for (int row = 0; row < kRows; ++row) {
      const int target = targets[row];
      if (target < 0) continue;
      bool largest = true;
      for (int label = 0; label < kClasses; ++label) {
        largest = largest && (label == target || logits(row, label) < logits(row, target));
      }
      const Scalar loss = losses(row, 0);
      loss_sum += loss >= 0 ? loss : std::numeric_limits<Scalar>::infinity();
      right += largest;
      ++count;
    }
    return Status::kOk;
  }
  /// The mean loss; infinite without examples.
  [[nodiscard]] Scalar loss() const {
    return count > 0 ? loss_sum / static_cast<Scalar>(count) : std::numeric_limits<Scalar>::infinity();
  }
  /// The part that is right; 0 without examples.
  [[nodiscard]] Scalar accuracy() const {
    return count > 0 ? static_cast<Scalar>(right) / static_cast<Scalar>(count) : Scalar(0);
  }
};

/// Whether a label is possible in the eyes of a model: its probability, of logits[1, classes], is at least
/// `least`. No, where the label is none, or the outputs are not numbers. Ask the model from the factory, not
/// the one that learns from these labels.
template <class Logits>
[[nodiscard]] bool is_plausible(const Logits& logits, int label,
                                typename Logits::Scalar least = typename Logits::Scalar(0.02)) {
  Tensor<typename Logits::Scalar, 1, 1> loss;
  const bool is_class = label >= 0 && CrossEntropy<>::forward_rows(logits, label, loss) == Status::kOk;
  return is_class && kernels::exponential(-loss(0, 0)) >= least;
}

/// What a mark has done.
struct GuardResult {
  Status status = Status::kOk;
  bool kept = false;           // these are the best parameters so far
  bool probe_dropped = false;  // they forget the probe, and are refused for that

  /// Whether the mark was looked at.
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
};

/// Keeps the best parameters of a training. `Trainer` is any trainer of this library. A plain value: a store
/// keeps the object itself beside the trainer's state, and the training goes on behind a reset.
template <class Trainer>
class GuardedTraining {
 public:
  using Parameters = typename Trainer::Parameters;
  using Scalar = typename Trainer::Scalar;

  /// Keeps the parameters that training starts from. `held_out` is of examples that are not trained on, most
  /// of them with right labels; `probe` of factory examples, or empty. kNoTargets where nothing is held out,
  /// kUnderWay in an update, kNotInitialized of a trainer that nobody has begun: nothing has changed then.
  Status begin(const Trainer& trainer, const Evaluation<Scalar>& held_out, const Evaluation<Scalar>& probe) {
    if (held_out.count == 0) return Status::kNoTargets;
    if (const Status status = check(trainer); status != Status::kOk) return status;
    best_ = trainer.parameters();
    best_loss_ = held_out.loss();
    first_accuracy_ = probe.accuracy();
    fingerprint_ = kFingerprint;
    return Status::kOk;
  }
  /// Keeps the trainer's parameters where they are the best so far: the loss of `held_out` is the lowest, and
  /// the accuracy of `probe` is at most `largest_drop` below that of the beginning. Both are evaluations of
  /// these parameters, on the examples of begin(). kNotInitialized before begin(); else refuses as begin().
  GuardResult mark(const Trainer& trainer, const Evaluation<Scalar>& held_out,
                   const Evaluation<Scalar>& probe, Scalar largest_drop = Scalar(0.1)) {
    if (fingerprint_ != kFingerprint) return {Status::kNotInitialized};
    if (held_out.count == 0) return {Status::kNoTargets};
    if (const Status status = check(trainer); status != Status::kOk) return {status};
    const bool dropped = !(probe.accuracy() >= first_accuracy_ - largest_drop);
    const bool kept = !dropped && held_out.loss() < best_loss_;
    if (kept) {
      best_ = trainer.parameters();
      best_loss_ = held_out.loss();
    }
    return {Status::kOk, kept, dropped};
  }
  /// Gives the trainer the best parameters. Where it has them it stays as it is; else it starts from them
  /// anew, with moments of zero. kNotInitialized before begin().
  Status finish(Trainer& trainer) const {
    if (fingerprint_ != kFingerprint) return Status::kNotInitialized;
    if (check(trainer) == Status::kOk && std::memcmp(&trainer.parameters(), &best_, sizeof best_) == 0) {
      return Status::kOk;
    }
    return trainer.load([this](Parameters& parameters) {
      parameters = best_;
      return Status::kOk;
    });
  }

  /// The best parameters so far; zeros before begin().
  [[nodiscard]] const Parameters& best() const { return best_; }
  /// Their loss on what is held out.
  [[nodiscard]] Scalar best_loss() const { return best_loss_; }

 private:
  static constexpr std::uint32_t kFingerprint = fingerprint("GuardedTraining", Trainer::State::kFingerprint);

  static Status check(const Trainer& trainer) {
    if (trainer.state().fingerprint_of_type == 0) return Status::kNotInitialized;
    return trainer.state().check();
  }

  Parameters best_{};
  Scalar best_loss_{}, first_accuracy_{};
  std::uint32_t fingerprint_{};  // where begun, of what is trained
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
