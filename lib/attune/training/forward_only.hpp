// Training without backward: two forward passes give the slope of the loss along a random direction.
//
//   g = (L(θ + ε·z) − L(θ − ε·z)) / (2·ε),   z = ±1 for each parameter,   θ −= learning_rate · g · z
//
// The method is simultaneous perturbation (Spall, "Multivariate Stochastic Approximation Using a Simultaneous
// Perturbation Gradient Approximation", 1992). It also fine-tunes large models (Malladi et al., "Fine-Tuning
// Language Models with Just Forward Passes", 2023). There is no tape, no gradient and no moment: RAM is that
// needed for inference plus two copies of the parameters. It takes many more steps than backward. It learns
// best with few trained parameters, such as factors of low rank (models/frozen.hpp).
//
//   attune::ForwardOnlyTrainer<Model, attune::CrossEntropy<>, 8> trainer;
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
//   trainer.accumulate(x, label);   // eight times
//   const auto result = trainer.update({.learning_rate = 1e-3f});
//
// Directions follow from the seed of the trainer and the number of the step, so one number per step describes
// the training. Another trainer with the same start replays result.change and gets the same bits, on any
// target.
//
//   if (other.replay(result.change) != attune::Status::kOk) …
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/pass.hpp>
#include <attune/training/batch.hpp>
#include <attune/training/forward_loss.hpp>
#include <attune/training/lifecycle.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

/// The perturbation of a ForwardOnlyTrainer.
struct Perturbation {
  double size = 1e-3;  // ε: distance that each parameter moves, to both sides; at least 1e-6 for float
};

/// The change that one step of a ForwardOnlyTrainer made, for replay: parameters changed by −size · z.
template <class Scalar>
struct ForwardOnlyChange {
  std::uint64_t step;  // number of the step, from zero
  Scalar size;         // learning rate · slope
};

/// The result of a step.
template <class Scalar>
struct [[nodiscard]] ForwardOnlyResult {
  Scalar loss;  // of the batch: mean of both sides; NaN if the step was refused
  Status status;
  ForwardOnlyChange<Scalar> change;  // all that replay() needs
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
};

namespace detail {

/// Stands for the optimizer in the state of such a training.
template <Perturbation perturbation, class ScalarType>
struct ForwardOnly {
  using Scalar = ScalarType;
  static constexpr std::uint32_t kFingerprint = fingerprint("ForwardOnly", perturbation.size);
  /// The generator of the directions.
  template <class>
  struct Moments {
    std::uint64_t key;
    void reset() { key = 0; }
    void seed(std::uint64_t bits) { key = bits; }
  };
};

/// to = from + size · z, over all tensors of two sets. The signs of 64 parameters are the bits of one random
/// number; each tensor begins with a new number.
template <class Set, class Scalar>
void move_along(std::uint64_t key, std::uint64_t step, const Set& from, Scalar size, Set& to) {
  std::uint64_t counter = mix(key + step * kGamma);
  for_each_tensor(
      [&](const TensorPath&, auto& moved, const auto& tensor) {
        std::uint64_t signs = 0;
        for (int i = 0; i < tensor.size; ++i, signs >>= 1) {
          if (i % 64 == 0) signs = mix(counter += kGamma);
          moved.values[i] = kernels::add(tensor.values[i], (signs & 1) != 0 ? size : -size);
        }
      },
      to, from);
}

}  // namespace detail

/// Trains `Model`, a Layer (execution/layer.hpp), on batches of `batch` sequences without backward. It trains
/// all of the model's Parameters and drops nothing. loss.hpp describes `Loss`.
template <detail::CheckedLayer Model, class Loss = MeanSquaredError, int batch = 1,
          Perturbation perturbation = Perturbation{}>
  requires detail::CheckedLoss<Loss, typename Model::Output>
class ForwardOnlyTrainer
    : public TrainingLifecycle<
          ForwardOnlyTrainer<Model, Loss, batch, perturbation>,
          TrainingState<Model, detail::ForwardOnly<perturbation, typename Model::Scalar>>> {
  static_assert(detail::Holds<(batch > 0)>, "attune::ForwardOnlyTrainer: batch must be at least 1");
  static_assert(
      detail::Holds<(perturbation.size >= 8 * std::numeric_limits<typename Model::Scalar>::epsilon() &&
                     perturbation.size <= 1)>,
      "attune::ForwardOnlyTrainer: the perturbation's size must be in [1e-6, 1] for float, [1e-14, 1] for "
      "double; parameters lose a smaller one to rounding, and 1e-3 is usual");
  static_assert(
      detail::Holds<!std::is_empty_v<typename Model::Parameters>>,
      "attune::ForwardOnlyTrainer: the model has no trainable parameters; leave a part out of Frozen");

 public:
  using Scalar = typename Model::Scalar;
  using Parameters = typename Model::Parameters;
  using State = TrainingState<Model, detail::ForwardOnly<perturbation, Scalar>>;
  using InputView = typename detail::InputsOf<Model, batch>::One;
  using TargetView = typename detail::TargetsOf<Loss, typename Model::Output, batch>::One;
  using OutputView = View<typename Model::Output>;
  using Result = ForwardOnlyResult<Scalar>;
  /// A step in a few bytes.
  using Change = ForwardOnlyChange<Scalar>;
  struct Options {
    Scalar learning_rate = Scalar(1e-3);
  };

  /// Runs two forward passes of one sequence: x[rows, cols] or ids, and target. Returns the mean of both
  /// losses. On an error (an invalid token or class, a loss that is not finite) nothing is added, and the
  /// batch continues. Returns kFullBatch after `batch` sequences.
  template <class Mask = NoMask>
  LossResult<Scalar> accumulate(InputView x, TargetView target, const Mask& mask = {},
                                const Loss& loss = detail::default_loss<Loss, Mask>()) {
    LossSum<Scalar> above{}, below{};
    Status status = above_.sequences == batch ? Status::kFullBatch : state_.ready();
    if (status == Status::kOk) status = pass(x, target, mask, loss, kSize, above);
    if (status == Status::kOk) status = pass(x, target, mask, loss, -kSize, below);
    if (status != Status::kOk) return {std::numeric_limits<Scalar>::quiet_NaN(), status};
    above_.add(above);
    below_.add(below);
    return {(detail::loss_of<Loss>(above) + detail::loss_of<Loss>(below)) / 2, Status::kOk};
  }
  /// Ends a batch: one step along the direction. Refused options and an incomplete batch leave everything
  /// unchanged. Losses that are not finite, and a batch without targets, discard the batch. Parameters change
  /// only if the status is kOk.
  ForwardOnlyResult<Scalar> update(const Options& options = {}) { return update_from(batch, options); }
  /// The same with the sequences accumulated so far, at least one.
  ForwardOnlyResult<Scalar> update_incomplete(const Options& options = {}) { return update_from(1, options); }
  /// A number in place of options is a compile error.
  ForwardOnlyResult<Scalar> update(detail::PlainNumber auto number) {
    (void)detail::number_for_options<Scalar>(number);
    return {};
  }
  /// Forgets the sequences accumulated since the last update().
  void discard() {
    above_.clear();
    below_.clear();
  }

  /// Applies the step of another trainer that started alike. Returns kOtherStep unless it is the next step,
  /// and kNotFinite for a change that is not finite; parameters then stay unchanged. Accumulated sequences
  /// are forgotten.
  Status replay(const Change& change) {
    if (const Status status = state_.ready(); status != Status::kOk) return status;
    if (change.step != state_.steps) return Status::kOtherStep;
    return apply(change);
  }

  /// y[rows, cols] for x with the current parameters. Returns a Status as Trainer::predict. `y` may not
  /// overlap `x`.
  template <class Mask = NoMask>
  Status predict(InputView x, OutputView y, const Mask& mask = {}) {
    return detail::predict_without_tape<Model>(state_, x, y, mask, scratch_);
  }

  /// RAM of training. object() is sizeof(ForwardOnlyTrainer); `inputs` is one sequence and its target.
  [[nodiscard]] static constexpr MemoryReport memory() {
    return detail::report_of(sizeof(ForwardOnlyTrainer),
                             {.parameters = 2 * sizeof(Parameters),
                              .scratch = detail::kBytes<decltype(scratch_)> + sizeof output_,
                              .inputs = sizeof(typename Model::Input) + sizeof(Target)});
  }

 private:
  using Target = typename detail::TargetOf<Loss, typename Model::Output>::type;
  static constexpr auto kSize = static_cast<Scalar>(perturbation.size);
  static_assert(std::is_trivially_copyable_v<Parameters>);
  friend TrainingLifecycle<ForwardOnlyTrainer, State>;

  // The loss on one side.
  Status pass(InputView x, TargetView target, const auto& mask, const Loss& loss, Scalar size,
              LossSum<Scalar>& sum) {
    detail::move_along(state_.moments.key, state_.steps, state_.parameters, size, moved_);
    return detail::forward_loss<Model>(context_for<Model>(mask), moved_, x, OutputView(output_), target, loss,
                                       sum, detail::Unused{}, scratch_);
  }

  Result update_from(int sequences, const Options& options) {
    constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
    const auto refused = [](Status status) { return Result{kNan, status, {}}; };
    if (const Status status = state_.ready(); status != Status::kOk) return refused(status);
    if (above_.sequences < sequences) return refused(Status::kIncompleteBatch);
    if (!detail::is_rate(options.learning_rate)) return refused(Status::kInvalidLearningRate);
    const LossSum<Scalar> above = above_.total(), below = below_.total();
    if (Loss::kMeanOverBatch && !(above.normalizer > 0)) {
      discard();
      return refused(Status::kNoTargets);
    }
    const Scalar slope = (detail::loss_of<Loss>(above) - detail::loss_of<Loss>(below)) / (2 * kSize);
    const Change change{state_.steps, options.learning_rate * slope};
    if (const Status status = apply(change); status != Status::kOk) return refused(status);
    return {(detail::loss_of<Loss>(above) + detail::loss_of<Loss>(below)) / 2, Status::kOk, change};
  }
  Status apply(const Change& change) {
    ATTUNE_ASSERT_ROUNDING();
    discard();
    if (!(change.size <= detail::kLargestGradient<Scalar> &&
          -change.size <= detail::kLargestGradient<Scalar>))
      return Status::kNotFinite;
    detail::move_along(state_.moments.key, state_.steps, state_.parameters, -change.size, state_.parameters);
    detail::count_step(state_, 0);
    return Status::kOk;
  }

  // For TrainingLifecycle.
  void begin_at_state() { discard(); }

  State state_;
  Parameters moved_;
  [[no_unique_address]] typename Model::InferenceScratch scratch_;
  typename Model::Output output_;
  detail::BatchSums<Loss, Scalar> above_, below_;  // losses on both sides
};

/// @cond
// The same for const types.
template <detail::CheckedLayer Model, class Loss, int batch, Perturbation perturbation>
  requires detail::CheckedLoss<Loss, typename Model::Output> && detail::SomeConst<Model, Loss>
class ForwardOnlyTrainer<Model, Loss, batch, perturbation>
    : public ForwardOnlyTrainer<std::remove_const_t<Model>, std::remove_const_t<Loss>, batch, perturbation> {
};
/// @endcond

}  // namespace ATTUNE_NAMESPACE
