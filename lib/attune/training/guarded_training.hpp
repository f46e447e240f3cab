// A guard for training in the field, against wrong labels, recordings or options. It keeps the parameters
// with the lowest loss on held-out examples, refuses parameters that forget a probe of factory examples, and
// rolls back.
//
//   static attune::GuardedTraining<Trainer> guard;               // a copy of the parameters, and a few words
//   attune::Evaluation<> held_out, probe;                         // of trainer.predict() on both sets
//   guard.begin(trainer, held_out, probe);
//   guard.mark(trainer, held_out, probe);                         // evaluated again, every few steps
//   guard.finish(trainer);                                        // the best of all marks
//
// A filter goes before training: is_plausible(logits, label) tells whether the model finds an example's label
// possible.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/simd/elementary.hpp>
#include <attune/training/cross_entropy.hpp>

namespace ATTUNE_NAMESPACE {

/// Cross-entropy and accuracy over a set of examples.
template <class ScalarType = float>
struct Evaluation {
  using Scalar = ScalarType;
  Scalar loss_sum = 0;  // infinite if an output is not a number
  int right = 0;        // rows whose single largest output is the target's
  int count = 0;        // rows

  /// Adds the outputs of an example, logits[rows, classes], with the class of each row. Rows with an ignored
  /// target (−100) do not count. Returns kInvalidTarget with nothing added.
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
  /// The fraction of right rows; 0 without examples.
  [[nodiscard]] Scalar accuracy() const {
    return count > 0 ? static_cast<Scalar>(right) / static_cast<Scalar>(count) : Scalar(0);
  }
};

/// Whether a model finds a label possible: its probability, from logits[1, classes], is at least `least`.
/// Takes any matrix or array. False if the label is not a class, or the outputs are not numbers. Use the
/// factory model here, not the model that learns from these labels.
template <class Logits, class Scalar = std::remove_const_t<detail::ElementOf<const Logits>>>
[[nodiscard]] bool is_plausible(const Logits& logits, int label,
                                std::type_identity_t<Scalar> least = Scalar(0.02)) {
  Tensor<Scalar, 1, 1> loss;
  const bool is_class = label >= 0 && CrossEntropy<>::forward_rows(logits, label, loss) == Status::kOk;
  return is_class && kernels::exponential(-loss(0, 0)) >= least;
}

/// The result of mark().
struct GuardResult {
  Status status = Status::kOk;
  bool kept = false;           // these are the best parameters so far
  bool probe_dropped = false;  // refused, because they forget the probe

  /// Whether the mark was evaluated.
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
};

/// Keeps the best parameters of a training. `Trainer` is any trainer of this library. A plain value: store
/// the object itself next to the trainer's state, and the training resumes after a reset.
template <class Trainer>
class GuardedTraining {
 public:
  using Parameters = typename Trainer::Parameters;
  using Scalar = typename Trainer::Scalar;

  /// Keeps the parameters at the start of training. `held_out` evaluates examples outside the training set,
  /// most with right labels. `probe` evaluates factory examples, or is empty. On an error nothing changes:
  /// kNoTargets without held-out examples, kUnderWay during an update, kNotInitialized before the trainer has
  /// started.
  Status begin(const Trainer& trainer, const Evaluation<Scalar>& held_out, const Evaluation<Scalar>& probe) {
    if (held_out.count == 0) return Status::kNoTargets;
    if (const Status status = check(trainer); status != Status::kOk) return status;
    best_ = trainer.parameters();
    best_loss_ = held_out.loss();
    first_probe_ = probe;
    fingerprint_ = kFingerprint;
    return Status::kOk;
  }
  /// Keeps the trainer's parameters if they are the best so far. That takes the lowest loss on `held_out`,
  /// and an accuracy on `probe` at most `largest_drop` below its start. Both evaluate the current parameters
  /// on the examples of begin(). Returns kNotInitialized before begin(), and the errors of begin().
  GuardResult mark(const Trainer& trainer, const Evaluation<Scalar>& held_out,
                   const Evaluation<Scalar>& probe, Scalar largest_drop = Scalar(0.1)) {
    if (fingerprint_ != kFingerprint) return {Status::kNotInitialized};
    if (held_out.count == 0) return {Status::kNoTargets};
    if (const Status status = check(trainer); status != Status::kOk) return {status};
    const bool dropped = !(drop_to(probe) <= largest_drop);
    const bool kept = !dropped && held_out.loss() < best_loss_;
    if (kept) {
      best_ = trainer.parameters();
      best_loss_ = held_out.loss();
    }
    return {Status::kOk, kept, dropped};
  }
  /// Gives the trainer the best parameters. If it has them already, it stays as it is. Otherwise it restarts
  /// from them, with moments of zero. Returns kNotInitialized before begin().
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
  /// Their loss on the held-out examples.
  [[nodiscard]] Scalar best_loss() const { return best_loss_; }

 private:
  static constexpr std::uint32_t kFingerprint = fingerprint("GuardedTraining", Trainer::State::kFingerprint);

  // The accuracy lost on the probe. Of as many rows it is a quotient of counts, which equals a literal.
  [[nodiscard]] Scalar drop_to(const Evaluation<Scalar>& probe) const {
    if (probe.count != first_probe_.count) return first_probe_.accuracy() - probe.accuracy();
    return Evaluation<Scalar>{.right = first_probe_.right - probe.right, .count = probe.count}.accuracy();
  }
  static Status check(const Trainer& trainer) {
    if (trainer.state().fingerprint_of_type == 0) return Status::kNotInitialized;
    return trainer.state().check_saved();
  }

  Parameters best_{};
  Scalar best_loss_{};
  Evaluation<Scalar> first_probe_{};  // at the start
  std::uint32_t fingerprint_{};       // of the trained model; set by begin()
};

}  // namespace ATTUNE_NAMESPACE
