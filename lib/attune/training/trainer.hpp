// Training as one static object: parameters, gradients, moments, tape and scratch, all of it known to the
// compiler.
//
//   static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW> trainer;   // .bss
//   trainer.initialise(attune::XavierUniform{}, attune::Rng{42});
//   float loss = trainer.step(inputs, targets, {.learning_rate = 3e-3f});
#pragma once

#include <attune/core/batch.hpp>
#include <attune/core/gradients.hpp>
#include <attune/core/initialise.hpp>
#include <attune/core/layer.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/update_in_backward.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// What a step did. Converts to its loss; `status` says whether parameters were changed, and if not, why.
template <class Scalar>
struct [[nodiscard]] StepResult {
  Scalar loss;
  Status status;
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
  constexpr operator Scalar() const { return loss; }
};

namespace detail {

// Scratch of training, which is dead when a prediction starts, and the other way round.
template <class Model, bool kDrops = kDropsIn<typename Model::Tape>>
struct EitherScratch {
  [[no_unique_address]] typename Model::Scratch training;

  template <class Mask, class Parameters, class X, class Y>
  ATTUNE_INLINE Status predict(const Mask& mask, const Parameters& parameters, X x, Y y,
                               typename Model::Tape& tape) {
    return forward_status<Model>(mask, parameters, x, y, tape, training);
  }
};
// With dropout a prediction goes another way than training: without a tape.
template <class Model>
struct EitherScratch<Model, true> {
  union {
    typename Model::Scratch training;
    typename Model::InferenceScratch inference;
  };

  template <class Mask, class Parameters, class X, class Y>
  ATTUNE_INLINE Status predict(const Mask& mask, const Parameters& parameters, X x, Y y,
                               typename Model::Tape&) {
    return forward_status<Model>(mask, parameters, x, y, inference);
  }
};

}  // namespace detail

/// Trains `Model` on batches of `batch` sequences. A Model names Scalar, Input, Output, Parameters, Tape,
/// Scratch, and has forward(parameters, x, y, tape, scratch[, mask]) and backward(parameters, x, tape, dy,
/// gradients, scratch). Its Input is a matrix, or a std::array of token ids: then forward answers with a
/// Status, and ids that it refuses are refused by step(), accumulate() and predict(). Where a part of it
/// drops, its Tape has for_each_dropout (dropout.hpp), by which masks are drawn and step() and predict()
/// differ, and it has InferenceScratch and forward(parameters, x, y, inference_scratch[, mask]). `Plan` says
/// what RAM is spent on (plan.hpp).
template <class Model, class Loss = MeanSquaredError, class Optimizer = AdamW, int batch = 1,
          class Plan = Streaming>
  requires MemoryPlan<Plan, Model>
class Trainer {
  static constexpr bool kKeepsGradients =
      std::is_same_v<typename Plan::template Gradients<Model>, typename Model::Parameters>;
  static constexpr bool kDrops = detail::kDropsIn<typename Model::Tape>;
  using Inputs = detail::InputsOf<Model, batch>;
  using Targets = detail::TargetsOf<Loss, typename Model::Output, batch>;
  static_assert(batch > 0, "attune::Trainer: batch must be at least 1");
  static_assert(!std::is_empty_v<typename Model::Parameters>,
                "attune::Trainer: the model has nothing to train; leave something of it out of Frozen");
  static_assert(
      requires(const typename Model::Parameters& parameters, typename Inputs::One x,
               MatrixView<typename Model::Scalar, Model::Output::rows, Model::Output::cols> y,
               typename Model::Tape& tape,
               typename Model::Scratch& scratch) { Model::forward(parameters, x, y, tape, scratch); },
      "attune::Trainer: the model has no forward(parameters, x, y, tape, scratch); one with a second input, "
      "as DecoderLayer, stands in a struct that takes both out of one");
  static_assert(batch == 1 || kKeepsGradients,
                "attune::Trainer: UpdateInBackward keeps no gradients to add up; its batch is 1");
  static_assert(
      std::is_same_v<typename Model::Scalar, typename Optimizer::Scalar>,
      "attune::Trainer: model and optimizer have different scalars; give both the same (Adam<{}, double>)");

 public:
  using Scalar = typename Model::Scalar;
  using Parameters = typename Model::Parameters;
  using InputView = typename Inputs::One;
  using TargetView = typename Targets::One;
  using BatchInput = typename Inputs::Storage;
  using BatchTarget = typename Targets::Storage;
  using BatchInputView = typename Inputs::View;
  using BatchTargetView = typename Targets::View;
  using Result = StepResult<Scalar>;

  /// Draws initial parameters, then where the masks of dropout start, and forgets all training: gradients,
  /// moments and counters become zero.
  template <class Initialiser>
  void initialise(const Initialiser& initialiser, Rng rng) {
    attune::initialise(parameters_, initialiser, rng);
    restart(rng);
  }
  /// Starts from given parameters, as a training that was interrupted or a model trained elsewhere. Dropout
  /// starts from `rng`.
  void load(const Parameters& parameters, Rng rng = Rng{0}) {
    parameters_ = parameters;
    restart(rng);
  }

  /// One optimiser step on a whole batch: inputs[batch·rows, cols] and targets[batch·rows, cols] (or the ids
  /// of either) stacked, sequence after sequence; `clipping` is NoClipping or GradientClipping, the mask one
  /// for all sequences. Returns the mean loss over the batch (the sum where the loss sums). Discards what
  /// accumulate() had gathered. When status is not kOk nothing has changed: no parameter, no moment, and the
  /// next step has the masks of dropout that this one had.
  template <class Clipping = NoClipping, AttentionMask Mask = NoMask>
  Result step(BatchInputView inputs, BatchTargetView targets, const typename Optimizer::Options& options,
              const Clipping& clipping = {}, const Mask& mask = {}) {
    if constexpr (!kKeepsGradients) {
      static_assert(std::is_same_v<Clipping, NoClipping>,
                    "attune::Trainer: UpdateInBackward has no gradients to clip; pass NoClipping{}");
      return step_in_backward(inputs, targets, options, mask);
    } else {
      return step_over_batch(inputs, targets, options, clipping, mask);
    }
  }

  /// Forward, loss and backward of one sequence, x[rows, cols] and target[rows, cols]; adds to the batch's
  /// gradients. For data that arrives one by one, and for a mask of its own for every sequence. Only one x
  /// and target need exist. What is refused (a token or a class that is none) adds nothing.
  template <AttentionMask Mask = NoMask>
  Status accumulate(InputView x, TargetView target, const Mask& mask = {}) requires kKeepsGradients {
    if (accumulated_ == batch) return Status::kFullBatch;
    const Status taken =
        detail::forward_status<Model>(mask, parameters_, x, output_, tape_, scratch_.training);
    if (taken != Status::kOk) return taken;
    const auto loss = Loss::forward(output_, target, output_, kWeight);
    if (const Status status = status_of(loss); status != Status::kOk) return status;
    loss_ += loss;
    detail::backward_through<Model>(mask, parameters_, x, tape_, ConstView<typename Model::Output>(output_),
                                    NoGradient{}, gradients_, scratch_.training);
    ++accumulated_;
    return Status::kOk;
  }

  /// Ends a batch: one optimiser step with the accumulated gradients, which are zero afterwards. Refused
  /// options and an incomplete batch leave everything as it was; a loss or gradient that is not finite
  /// discards the batch.
  template <class Clipping = NoClipping>
  Result update(const typename Optimizer::Options& options,
                const Clipping& clipping = {}) requires kKeepsGradients {
    if (accumulated_ != batch) return {loss_, Status::kIncompleteBatch};
    if (const Status status = clipping.check(); status != Status::kOk) return {loss_, status};
    Result result{loss_, Status::kNotFinite};
    if (detail::finite(loss_) && all_finite(gradients_)) {
      result.status = Optimizer::step(parameters_, gradients_, moments_, options,
                                      clipping.template factor<Scalar>(gradients_));
      if (!result.ok()) return result;
    } else {
      rewind_masks();
    }
    clear();
    return result;
  }

  /// Forgets the sequences accumulated since the last update(); those that come instead have their masks of
  /// dropout.
  void discard() requires kKeepsGradients {
    rewind_masks();
    clear();
  }

  /// y[rows, cols] for x[rows, cols] with the parameters as they are; nothing is dropped. A Status where the
  /// model takes token ids, void elsewhere. Uses tape and scratch: not between accumulate() and reading
  /// tape(). `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  detail::Outcome<Model> predict(InputView x, MatrixView<Scalar, Model::Output::rows, Model::Output::cols> y,
                                 const Mask& mask = {}) {
    return static_cast<detail::Outcome<Model>>(scratch_.predict(mask, parameters_, x, y, tape_));
  }

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const Parameters& gradients() const requires kKeepsGradients { return gradients_; }
  /// What the last predict() kept: attention weights among it. Not of a model with dropout, which predicts
  /// without a tape.
  [[nodiscard]] const typename Model::Tape& tape() const requires(!kDrops) { return tape_; }

  /// RAM of training. object() is sizeof(Trainer); `inputs` is what the caller holds beside it: the inputs
  /// and targets of a whole batch for step(), of one sequence for accumulate().
  [[nodiscard]] static constexpr MemoryReport memory(Feeding feeding = Feeding::kWholeBatch) {
    MemoryReport report{.parameters = sizeof(Parameters),
                        .gradients = sizeof gradients_,
                        .moments = detail::kBytes<Moments>,
                        .tape = detail::kBytes<typename Model::Tape> + sizeof(typename Model::Output),
                        .scratch = detail::kBytes<Scratch>,
                        .inputs = (sizeof(typename Model::Input) + sizeof(BatchTarget) / batch) *
                                  (feeding == Feeding::kWholeBatch ? std::size_t{batch} : 1)};
    constexpr MemoryReport kWorkspace = Workspace::memory();
    report.parameters += kWorkspace.parameters;
    report.gradients += kWorkspace.gradients;
    report.tape += kWorkspace.tape;
    report.scratch += kWorkspace.scratch;
    report.state = sizeof(Trainer) - report.object();
    return report;
  }

 private:
  using Moments = typename Optimizer::template Moments<Parameters>;
  using Scratch = detail::EitherScratch<Model>;
  // Targets that are classes have no lanes.
  static constexpr bool kClasses = requires { Loss::kClassTargets; };
  using Workspace = typename std::conditional_t<kClasses, Streaming, Plan>::template Workspace<Model>;
  static constexpr int kTogether = Workspace::kSequences;
  static constexpr Scalar kWeight = Loss::kMeanOverBatch ? Scalar(1) / Scalar(batch) : Scalar(1);
  static_assert(std::is_trivially_copyable_v<Parameters> && std::is_trivially_copyable_v<Moments>);

  // Of a loss whose targets can be wrong.
  template <class LossResult>
  static Status status_of(const LossResult& result) {
    if constexpr (requires { result.status; }) {
      return result.status;
    } else {
      return Status::kOk;
    }
  }

  template <class Clipping, class Mask>
  ATTUNE_INLINE Result step_over_batch(BatchInputView inputs, BatchTargetView targets,
                                       const typename Optimizer::Options& options, const Clipping& clipping,
                                       const Mask& mask) {
    discard();
    if constexpr (kTogether > 1) {
      workspace_.load(parameters_);
      for (; accumulated_ + kTogether <= batch; accumulated_ += kTogether) {
        workspace_.template accumulate<Loss>(inputs.data + accumulated_ * Model::Input::size,
                                             targets.data + accumulated_ * Model::Output::size, mask, kWeight,
                                             gradients_, loss_);
      }
    }
    for (int sequence = accumulated_; sequence < batch; ++sequence) {
      const Status status = accumulate(Inputs::at(inputs, sequence), Targets::at(targets, sequence), mask);
      if (status != Status::kOk) {
        discard();
        return {0, status};
      }
    }
    const Result result = update(options, clipping);
    if (!result.ok()) discard();
    return result;
  }

  template <class Mask>
  ATTUNE_INLINE Result step_in_backward(InputView x, TargetView target,
                                        const typename Optimizer::Options& options, const Mask& mask) {
    if (const Status status = Optimizer::check(options); status != Status::kOk) return {0, status};
    const Status taken =
        detail::forward_status<Model>(mask, parameters_, x, output_, tape_, scratch_.training);
    if (taken != Status::kOk) return {0, taken};
    const auto result = Loss::forward(output_, target, output_, kWeight);
    if (const Status status = status_of(result); status != Status::kOk) return {result, status};
    const Scalar loss = result;
    if (!detail::finite(loss)) return {loss, Status::kNotFinite};

    ParameterUpdates<Model, Optimizer> updates(parameters_, moments_, options, gradients_);
    detail::backward_through<Model>(mask, parameters_, x, tape_, ConstView<typename Model::Output>(output_),
                                    NoGradient{}, updates.leaves, scratch_.training);
    return {loss, Status::kOk};
  }

  void restart(Rng rng) {
    moments_.reset();
    draw_seeds(tape_, rng);
    if constexpr (kKeepsGradients) clear();
  }

  void clear() {
    set_zero(gradients_);
    loss_ = 0;
    accumulated_ = 0;
  }
  // Each backward went on to the masks of the next sequence.
  void rewind_masks() { skip_masks(tape_, -accumulated_); }

  Parameters parameters_;
  typename Plan::template Gradients<Model> gradients_;
  [[no_unique_address]] Moments moments_;
  [[no_unique_address]] typename Model::Tape tape_;
  [[no_unique_address]] Scratch scratch_;
  [[no_unique_address]] Workspace workspace_;
  typename Model::Output output_;  // y, then dL/dy
  Scalar loss_;
  int accumulated_;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
