// Training as one static object: parameters, gradients, moments, tape and scratch. The compiler knows its
// size.
//
//   static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW> trainer;   // .bss
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
//   const auto result = trainer.step(inputs, targets, {.learning_rate = 3e-3f});
#pragma once

#include <concepts>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include <attune/core/gradients.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/pass.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/adam.hpp>
#include <attune/training/batch.hpp>
#include <attune/training/batch_update.hpp>
#include <attune/training/forward_loss.hpp>
#include <attune/training/int8_training.hpp>
#include <attune/training/lifecycle.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/memory_of_training.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/placement.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/shared_buffers.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>
#include <attune/training/training_in_slices.hpp>
#include <attune/training/update_in_backward.hpp>

namespace ATTUNE_NAMESPACE {

/// Trains `Model`, a Layer (execution/layer.hpp), on batches of `batch` sequences. The model's Input is a
/// matrix or token ids; step(), accumulate() and predict() return its errors. If a layer has dropout, the
/// model's Tape has for_each_dropout (dropout.hpp), which draws the masks; predict() drops nothing. loss.hpp
/// describes `Loss`, optimizer.hpp `Optimizer`, and plan.hpp `Plan`, the use of RAM.
template <detail::CheckedLayer Model, class Loss = MeanSquaredError, class Optimizer = AdamW, int batch = 1,
          class Plan = BySequence>
  requires detail::CheckedLoss<Loss, typename Model::Output> &&
      detail::CheckedOptimizer<Optimizer, typename Model::Parameters> && detail::CheckedPlan<Plan, Model>
class Trainer : public TrainingLifecycle<Trainer<Model, Loss, Optimizer, batch, Plan>,
                                         TrainingState<Model, Optimizer, detail::kPrecisionOf<Plan>>> {
  using Planned = detail::PlanWith<Plan, Optimizer>;
  static constexpr bool kKeepsGradients = detail::KeepsGradients<Planned, Model>;
  using Inputs = detail::InputsOf<Model, batch>;
  using Targets = detail::TargetsOf<Loss, typename Model::Output, batch>;
  static_assert(detail::Holds<(batch > 0)>, "attune::Trainer: batch must be at least 1");
  static_assert(detail::Holds<!std::is_empty_v<typename Model::Parameters>>,
                "attune::Trainer: the model has no trainable parameters; leave a part out of Frozen");
  static constexpr bool kFits = detail::check_batch<kKeepsGradients, batch>();
  static_assert(
      detail::Holds<std::is_same_v<typename Model::Scalar, typename Optimizer::Scalar>>,
      "attune::Trainer: model and optimizer have different scalars; give both the same (Adam<{}, double>)");

 public:
  using Scalar = typename Model::Scalar;
  using State = TrainingState<Model, Optimizer, detail::kPrecisionOf<Plan>>;
  using Parameters = typename State::Parameters;
  using Gradients = typename State::Gradients;
  using InputView = typename Inputs::One;
  using TargetView = typename Targets::One;
  using BatchInput = typename Inputs::Storage;
  using BatchTarget = typename Targets::Storage;
  using BatchInputView = typename Inputs::View;
  using BatchTargetView = typename Targets::View;
  using OutputView = View<typename Model::Output>;
  using Result = StepResult<Scalar>;
  using Options = typename Optimizer::Options;
  using Coefficients = typename Optimizer::Coefficients;

  /// One optimizer step on a whole batch: inputs[batch·rows, cols] and targets[batch·rows, cols] (or the ids
  /// of either), stacked sequence after sequence. Options that are left out are the optimizer's defaults.
  /// `clipping` is NoClipping or GradientClipping. `masks` is one mask for all sequences, or a std::array or
  /// std::span with one for each. The loss is the mean over the batch, or the sum for a loss that sums.
  /// Discards accumulated sequences. On an error nothing changes (but see UpdateInBackward): no parameter and
  /// no moment, and the next step uses the same dropout masks.
  template <class Clipping = NoClipping, class Masks = NoMask>
  StepResult<Scalar> step(BatchInputView inputs, BatchTargetView targets, const Options& options = {},
                          const Clipping& clipping = {}, const Masks& masks = {},
                          const Loss& loss = detail::default_loss<Loss, Masks>()) {
    if constexpr (kFits && detail::check_clipping<Clipping>() && detail::check_masks<Model, Masks, batch>()) {
      if constexpr (kKeepsGradients) {
        return step_over_batch(inputs, targets, options, clipping, masks, loss);
      } else {
        static_assert(detail::Holds<std::is_same_v<Clipping, NoClipping>>,
                      "attune::Trainer: UpdateInBackward has no gradients to clip; pass NoClipping{}");
        return detail::step_in_backward<Model>(state_, executor_, gradients_.values(), work_, inputs, targets,
                                               options, detail::mask_of(masks, 0), loss);
      }
    }
  }

  /// A number in place of options is a compile error.
  StepResult<Scalar> step(BatchInputView, BatchTargetView, detail::PlainNumber auto number, const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }

  /// Forward, loss and backward of one sequence, x[rows, cols] and target[rows, cols]; adds to the batch's
  /// gradients. Use it for data that arrives one sequence at a time: only one x and target need to exist.
  /// Returns the sequence's own loss. On an error (an invalid token or class, a loss that is not finite)
  /// nothing is added, and the batch continues. `on_output` is called with y, a ConstView<Output>, before its
  /// gradient overwrites it.
  template <class Mask = NoMask, class OnOutput = detail::Unused>
  [[gnu::noinline]] LossResult<Scalar> accumulate(InputView x, TargetView target, const Mask& mask = {},
                                                  const Loss& loss = detail::default_loss<Loss, Mask>(),
                                                  const OnOutput& on_output = {}) requires kKeepsGradients {
    return accumulate_in<Model>(x, target, mask, loss, on_output);
  }
  /// accumulate() from the input of a layer on: `features` are that layer's input, such as stored features of
  /// a replayed example. The model is a Sequential. Layers before `layer` are not computed, and their trained
  /// parameters get no gradient. `mask` is a mask for the computed layers.
  template <int layer, class Mask = NoMask, std::same_as<Model> Whole = Model>
    requires requires { typename Whole::template From<layer>; }
  [[gnu::noinline]] LossResult<Scalar> accumulate_from(
      ConstView<typename Whole::template From<layer>::Input> features, TargetView target,
      const Mask& mask = {}, const Loss& loss = detail::default_loss<Loss, Mask>()) requires kKeepsGradients {
    return accumulate_in<typename Whole::template From<layer>>(features, target, mask, loss,
                                                               detail::Unused{});
  }
  /// accumulate() in slices (training_in_slices.hpp). This call computes nothing. x and target must stay
  /// unchanged until the pass is done.
  template <int most_work = kSliceWork, class X, class Target, class Mask = NoMask>
  [[nodiscard]] AccumulationInSlices<Trainer, Loss, Mask, most_work, Model, InputView> accumulate_in_slices(
      X&& x, Target&& target, const Mask& mask = {},
      const Loss& loss = detail::default_loss<Loss, Mask>()) requires kKeepsGradients {
    return in_slices<most_work, Model, X, Target>(x, target, mask, loss);
  }
  /// accumulate_from() in slices. Both must stay unchanged until the pass is done.
  template <int layer, int most_work = kSliceWork, class X, class Target, class Mask = NoMask,
            std::same_as<Model> Whole = Model>
    requires requires { typename Whole::template From<layer>; }
  [[nodiscard]] auto accumulate_from_in_slices(X&& features, Target&& target, const Mask& mask = {},
                                               const Loss& loss = detail::default_loss<Loss, Mask>()) requires
      kKeepsGradients {
    return in_slices<most_work, typename Whole::template From<layer>, X, Target>(features, target, mask,
                                                                                 loss);
  }

  /// Ends a batch: one optimizer step with the accumulated gradients, which are then zeroed. Refused options
  /// and an incomplete batch leave everything unchanged. Gradients that are not finite, and a batch without
  /// targets, discard the batch.
  template <class Clipping = NoClipping>
  [[gnu::noinline]] StepResult<Scalar> update(const Options& options = {},
                                              const Clipping& clipping = {}) requires kKeepsGradients {
    const Status may = may_update(batch);
    return may == Status::kOk ? finish(options, clipping) : Result::refused(may);
  }
  /// The same with the sequences accumulated so far, at least one; a mean is taken over them.
  template <class Clipping = NoClipping>
  StepResult<Scalar> update_incomplete(const Options& options = {},
                                       const Clipping& clipping = {}) requires kKeepsGradients {
    const Status may = may_update(1);
    return may == Status::kOk ? finish(options, clipping) : Result::refused(may);
  }
  /// A number in place of options is a compile error.
  StepResult<Scalar> update(detail::PlainNumber auto number, const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }
  /// The same.
  StepResult<Scalar> update_incomplete(detail::PlainNumber auto number, const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }
  /// update() in slices (training_in_slices.hpp). The first slices compute the norm of the gradients and
  /// change nothing. Between the others, some parameters are updated and others not.
  template <int most_work = kSliceWork, class Clipping = NoClipping>
  [[nodiscard]] UpdateInSlices<Trainer, Optimizer, Clipping, most_work> update_in_slices(
      const Options& options = {}, const Clipping& clipping = {}) requires kKeepsGradients {
    static_assert(detail::check_clipping<Clipping>());
    return {*this, options, clipping, may_update(batch)};
  }
  /// update_incomplete() in slices.
  template <int most_work = kSliceWork, class Clipping = NoClipping>
  [[nodiscard]] UpdateInSlices<Trainer, Optimizer, Clipping, most_work> update_incomplete_in_slices(
      const Options& options = {}, const Clipping& clipping = {}) requires kKeepsGradients {
    static_assert(detail::check_clipping<Clipping>());
    return {*this, options, clipping, may_update(1)};
  }

  /// Forgets the sequences accumulated since the last update(), and a sequence under way in slices. The next
  /// sequences get their dropout masks. Also ends an update in slices that has changed nothing yet; one that
  /// has continues.
  void discard() requires kKeepsGradients {
    if (updating()) return;
    work_.lock().end_pass(this);
    if (has_gradients()) clear_gradients();  // not placed ones that another trainer has taken
    sums_.clear();
  }

  /// y[rows, cols] for x[rows, cols] with the current parameters, without dropout. Uses tape and scratch: do
  /// not call it between accumulate() and reading tape(). Returns kUnderWay during a pass in slices; use
  /// InferenceInSlices with its own scratch then. Returns kNotInitialized without parameters,
  /// kInvalidToken for an invalid id, and kNotFinite if y, which is written, is not finite for all tokens
  /// that the mask does not call padding. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Status predict(InputView x, OutputView y, const Mask& mask = {}) {
    const Status may = may_predict();
    return may == Status::kOk ? predict_in(context_of(mask), x, y, mask) : may;
  }
  /// predict() in slices (training_in_slices.hpp). This call computes nothing. x and y must stay until the
  /// pass is done.
  template <int most_work = kSliceWork, class X, class Y, class Mask = NoMask>
  [[nodiscard]] PredictionInSlices<Trainer, Mask, most_work> predict_in_slices(X&& x, Y&& y,
                                                                               const Mask& mask = {}) {
    detail::check_mask<Model, Mask>();
    detail::check_stays<X>();
    detail::check_stays<Y>();
    return {*this, InputView(x), OutputView(y), mask, may_predict()};
  }

  /// Gradients of the sum of accumulated losses, before division by the batch and before clipping.
  [[nodiscard]] const Gradients& gradients() const requires kKeepsGradients { return gradients_.values(); }
  /// The tape of the last predict(), with attention weights. Not for models with dropout, which predict
  /// without a tape.
  [[nodiscard]] const auto& tape() const requires(!State::kDrops) { return work_.memory().tape; }

  /// RAM of training. object() is sizeof(Trainer). `inputs` is the caller's memory: inputs and targets of a
  /// whole batch for step(), of one sequence for accumulate().
  [[nodiscard]] static constexpr MemoryReport memory(Feeding feeding = Feeding::kWholeBatch) {
    MemoryReport report = detail::memory_of_training<Model, Optimizer, Planned>();
    report.inputs = (sizeof(typename Model::Input) + sizeof(BatchTarget) / batch) *
                    (feeding == Feeding::kWholeBatch ? std::size_t{batch} : 1);
    return detail::report_of(sizeof(Trainer), report);
  }

  /// The share of one layer of a Sequential: its parameters, gradients and moments, its own tape (without the
  /// matrices between layers), and the scratch that it alone would need.
  template <int index>
    requires requires { typename Model::template Layer<index>; }
  [[nodiscard]] static constexpr MemoryReport memory_of_layer() {
    using PlanOfModel = std::conditional_t<kKeepsGradients, BySequence,
                                           detail::NoGradientsKept<detail::kUpdateBlockIn<Optimizer>>>;
    return detail::memory_of_layer<typename Model::template Layer<index>, Optimizer, PlanOfModel>();
  }

 private:
  using Moments = typename State::Moments;
  using Work = detail::TrainerBuffersOf<Planned, Model>;
  using BatchExecutor = typename Planned::template BatchExecutor<Model>;
  static constexpr int kLanes = BatchExecutor::kSequences;
  static_assert(std::is_trivially_copyable_v<Parameters> && std::is_trivially_copyable_v<Moments>);

  friend TrainingLifecycle<Trainer, State>;
  friend detail::PassInSlices<Trainer>;
  template <class, class, class, int, class, class>
  friend class AccumulationInSlices;
  template <class, class, class, int>
  friend class UpdateInSlices;
  template <class, class, int>
  friend class PredictionInSlices;

  // Whether placed gradients are free, or have this trainer's batch.
  [[nodiscard]] bool has_gradients() const { return gradients_.free_for(this, sums_.sequences); }
  Status may_accumulate() const {
    if (work_.lock().under_way() || !has_gradients()) return Status::kUnderWay;
    return sums_.sequences == batch ? Status::kFullBatch : state_.ready();
  }
  Status may_update(int sequences) const {
    if (work_.lock().under_way() || !has_gradients()) return Status::kUnderWay;
    if (const Status status = state_.ready(); status != Status::kOk) return status;
    return sums_.sequences < sequences ? Status::kIncompleteBatch : Status::kOk;
  }
  [[nodiscard]] Status may_predict() const {
    return work_.lock().under_way() ? Status::kUnderWay : state_.ready();
  }
  // Whether the pass under way is an update, which has taken the batch.
  [[nodiscard]] bool updating() const { return sums_.sequences < 0; }

  static LossResult<Scalar> own_loss(Status status, const LossSum<Scalar>& of) {
    if (status != Status::kOk) return {std::numeric_limits<Scalar>::quiet_NaN(), status};
    return {detail::loss_of<Loss>(of), status};
  }

  [[nodiscard]] const auto& weights() const { return executor_.weights(state_.parameters); }
  template <class Computed = Model, class Mask, class Slices = RunToCompletion>
  static constexpr auto context_of(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices = {}) {
    return detail::context_in_plan<Computed, BatchExecutor>(mask, slices);
  }
  // Takes placed gradients, as a stage. kUnderWay if another trainer took them between two slices.
  ATTUNE_INLINE Status take_gradients(const AnyContext auto& context) {
    if (!detail::PlacesGradients<Planned>) return Status::kOk;
    context.stage([&] { gradients_.give_to(this); });
    return gradients_.free_for(this, 1) ? Status::kOk : Status::kUnderWay;
  }
  // Weights of a plan's own, as a stage. Placed weights may be another trainer's since the last slice.
  ATTUNE_INLINE Status load_weights(const AnyContext auto& context) {
    const auto load = [&] { return executor_.load(state_.parameters); };
    return detail::OwnsWeights<BatchExecutor> && !detail::PlacesWeights<Plan> ? context.answer(load) : load();
  }
  ATTUNE_INLINE Status predict_in(const AnyContext auto& context, InputView x, OutputView y,
                                  const auto& mask) {
    if (const Status loaded = load_weights(context); loaded != Status::kOk) return loaded;
    const Status status = context.inside([&]() ATTUNE_INLINE_LAMBDA {
      return work_.memory().scratch.predict(context, weights(), x, y, work_.memory().tape);
    });
    if (status != Status::kOk) return status;
    return context.answer(
        [&]() ATTUNE_INLINE_LAMBDA { return detail::status_of_output<Model>(Status::kOk, mask, y); });
  }
  // `Computed` is the model, or a part of it that has the model's tape, scratch and parameters.
  template <class Computed, class Mask>
  ATTUNE_INLINE LossResult<Scalar> accumulate_in(const auto& x, TargetView target, const Mask& mask,
                                                 const Loss& loss, const auto& on_output) {
    LossSum<Scalar> added{};
    Status status = may_accumulate();
    if (status == Status::kOk) {
      status = add_sequence<Computed>(x, target, loss, on_output, added, context_of<Computed>(mask));
    }
    return own_loss(status, added);
  }
  template <int most_work, class Computed, class X, class Target, class Mask>
  auto in_slices(X& x, Target& target, const Mask& mask, const Loss& loss) {
    using XView = ConstView<typename Computed::Input>;
    detail::check_mask<Computed, Mask>();
    detail::check_stays<X>();
    detail::check_stays<Target>();
    return AccumulationInSlices<Trainer, Loss, Mask, most_work, Computed, XView>(
        *this, XView(x), TargetView(target), mask, loss, may_accumulate());
  }
  template <class Computed = Model, class OnOutput, AnyContext Call>
  ATTUNE_INLINE Status add_sequence(const auto& x, TargetView target, const Loss& loss,
                                    const OnOutput& on_output, LossSum<Scalar>& added, const Call& context) {
    auto& tape = work_.memory().tape;
    auto& scratch = work_.memory().scratch.training;
    const OutputView output(work_.memory().output);
    Status status = take_gradients(context);  // the first stage, so that the first slice has it
    if (State::kDrops) context.stage([&] { state_.masks.apply_to(tape, sums_.sequences); });
    if (status == Status::kOk) status = load_weights(context);
    if (status == Status::kOk) {
      status = detail::forward_loss<Computed>(context, weights(), x, output, target, loss, added, on_output,
                                              tape, scratch);
    }
    if (status != Status::kOk) {
      if (sums_.sequences == 0 && gradients_.free_for(this, 1)) gradients_.give_to(nullptr);
      return status;
    }
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      detail::backward_in<Computed>(context, weights(), x, tape, ConstView<typename Model::Output>(output),
                                    NoGradient{}, gradients_.values(), scratch);
    });
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      sums_.add(added);
      if (!Call::kRunsToCompletion) work_.lock().end_pass(this);
    });
    return Status::kOk;
  }

  ATTUNE_INLINE Result step_over_batch(BatchInputView inputs, BatchTargetView targets, const Options& options,
                                       const auto& clipping, const auto& masks, const Loss& loss) {
    if (work_.lock().under_way() || !has_gradients()) return Result::refused(Status::kUnderWay);
    if (const Status status = state_.ready(); status != Status::kOk) return Result::refused(status);
    if (sums_.sequences > 0) discard();
    [[maybe_unused]] bool loaded = false;
    for (int lockstep_from = 0; sums_.sequences < batch;) {
      if constexpr (kLanes > 1) {
        if (sums_.sequences >= lockstep_from && sums_.sequences + kLanes <= batch &&
            detail::have_one_mask<kLanes>(masks, sums_.sequences)) {
          if (!loaded) executor_.broadcast(state_.parameters);
          loaded = true;
          const int first = sums_.sequences;
          state_.masks.apply_to(work_.memory().tape, first);
          const bool added = executor_.accumulate(
              Inputs::at(inputs, first), [&](int s) { return Targets::at(targets, first + s); },
              work_.memory().tape, detail::mask_of(masks, first), loss, gradients_.values(), sums_);
          if (!added) lockstep_from = first + kLanes;  // one by one up to there
          continue;
        }
      }
      LossSum<Scalar> added;
      const Status status =
          add_sequence(Inputs::at(inputs, sums_.sequences), Targets::at(targets, sums_.sequences), loss,
                       detail::Unused{}, added, context_of(detail::mask_of(masks, sums_.sequences)));
      if (status != Status::kOk) {
        discard();
        return Result::refused(status);
      }
    }
    const Result result = finish(options, clipping);
    if (!result.ok()) discard();
    return result;
  }

  // Ends a batch whose gradients have the norm norm(). The first slice takes the batch, and stores the work
  // of the others in `update`.
  template <AnyContext Call>
  ATTUNE_INLINE void finish(const Options& options, const auto& clipping, const auto& norm,
                            detail::BatchUpdate<Optimizer>& update, const Call& context) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      ::new (static_cast<void*>(&update)) detail::BatchUpdate<Optimizer>(
          detail::begin_update<Loss>(state_, norm(), sums_.total(), options, clipping));
      if (!Call::kRunsToCompletion && update.result.ok()) {
        sums_.sequences = -sums_.sequences;
        state_.fingerprint_of_type = State::kPartOfUpdate;
      } else if (!Call::kRunsToCompletion) {
        work_.lock().end_pass(this);
      }
      const Status status = update.result.status;
      if (status == Status::kNotFinite || status == Status::kNoTargets) discard();
    });
    if (!update.result.ok()) return;
    detail::update_and_clear_all<Optimizer>(update.coefficients, state_.parameters, gradients_.values(),
                                            state_.moments, context);
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      executor_.invalidate();
      detail::count_step(state_, Call::kRunsToCompletion ? sums_.sequences : -sums_.sequences);
      sums_.clear();
      gradients_.give_to(nullptr);
      if (Call::kRunsToCompletion) return;
      state_.fingerprint_of_type = State::kFingerprint;
      work_.lock().end_pass(this);
    });
  }
  template <class Clipping>
  ATTUNE_INLINE Result finish(const Options& options, const Clipping& clipping) {
    if constexpr (detail::check_clipping<Clipping>()) {
      detail::BatchUpdate<Optimizer> update;
      const auto norm = [&]() ATTUNE_INLINE_LAMBDA {
        return clipping.template norm<Scalar>(gradients_.values());
      };
      finish(options, clipping, norm, update, Context<>{});
      return update.result;
    }
  }

  // For TrainingLifecycle.
  auto& own_tape() { return work_.memory().tape; }
  void begin_at_state() {
    executor_.invalidate();
    work_.lock().end_pass(this);
    if (kKeepsGradients) clear_gradients();
    sums_.clear();
  }

  void clear_gradients() {
    std::memset(static_cast<void*>(&gradients_.values()), 0, sizeof gradients_.values());
    gradients_.give_to(nullptr);
  }

  State state_;
  [[no_unique_address]] detail::GradientsOfTrainer<Planned, Model> gradients_;
  [[no_unique_address]] Work work_;
  [[no_unique_address]] BatchExecutor executor_;
  detail::BatchSums<Loss, Scalar> sums_;  // its count of sequences is negative while an update is under way
  [[no_unique_address]] detail::CopiesOfTrainer<Plan> copies_;
};

/// @cond
// The same for const types.
template <detail::CheckedLayer Model, class Loss, class Optimizer, int batch, class Plan>
  requires detail::CheckedLoss<Loss, typename Model::Output> &&
      detail::CheckedOptimizer<Optimizer, typename Model::Parameters> && detail::CheckedPlan<Plan, Model> &&
      detail::SomeConst<Model, Loss, Optimizer, Plan>
class Trainer<Model, Loss, Optimizer, batch, Plan>
    : public Trainer<std::remove_const_t<Model>, std::remove_const_t<Loss>, std::remove_const_t<Optimizer>,
                     batch, std::remove_const_t<Plan>> {
};
/// @endcond

}  // namespace ATTUNE_NAMESPACE
