// Training on a crew (execution/crew.hpp): on both cores of a microcontroller, with the bits of one. One
// static object; the compiler knows its size.
//
//   static attune::TwoCores<SecondCore> cores;
//   static attune::CrewTrainer<decltype(cores), Model, attune::CrossEntropy<>, attune::AdamW, 16> trainer;
//   cores.start();
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
//   const auto result = trainer.step(cores, inputs, targets, {.learning_rate = 3e-3f});
//
// Each member takes a sequence of the batch. All add to one set of gradients, in the order of the batch
// (RelayOrder, execution/batch_order.hpp). So a crew takes one tape, scratch and output more for each further
// member, and has the bits of a Trainer for every layer. If a batch has fewer sequences than members and the
// model has no dropout, the members share each sequence (execution/crew_slices.hpp); then only scratch is
// more. The members share the optimizer's step, too.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/execution/batch_order.hpp>
#include <attune/execution/crew.hpp>
#include <attune/execution/crew_slices.hpp>
#include <attune/training/trainer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Plan, class Model>
constexpr bool check_crew_plan() {
  static_assert(Holds<TakesSequences<Plan, Model>>,
                "attune::CrewTrainer: the plan must be BySequence or Int8Training; members take one sequence "
                "at a time, keep its gradients, and share no memory");
  return TakesSequences<Plan, Model>;
}
template <class Plan, class Model>
concept CheckedCrewPlan = check_crew_plan<Plan, Model>();

}  // namespace detail

/// Trains `Model` on batches of `batch` sequences on a crew. Its interface is Trainer's, with the crew as the
/// first argument, and without accumulate() and update(). `Plan` is BySequence, or Int8Training. The trainer
/// does not keep the crew, so that it stays zero before main; pass the same one to every call.
template <detail::CheckedCrew Members, detail::CheckedLayer Model, class Loss = MeanSquaredError,
          class Optimizer = AdamW, int batch = 1, class Plan = BySequence>
  requires detail::CheckedLoss<Loss, typename Model::Output> &&
      detail::CheckedOptimizer<Optimizer, typename Model::Parameters> && detail::CheckedCrewPlan<Plan, Model>
class CrewTrainer : public TrainingLifecycle<CrewTrainer<Members, Model, Loss, Optimizer, batch, Plan>,
                                             typename Trainer<Model, Loss, Optimizer, batch, Plan>::State> {
  static constexpr int kMembers = Members::kMembers;
  static constexpr bool kSharesSequences = batch < kMembers && !detail::DropsIn<typename Model::Tape>;
  static constexpr int kSequences = kSharesSequences ? 1 : kMembers;  // at the same time
  using Inputs = detail::InputsOf<Model, batch>;
  using Targets = detail::TargetsOf<Loss, typename Model::Output, batch>;

 public:
  /// The trainer with the same bits on one core.
  using PerSequence = Trainer<Model, Loss, Optimizer, batch, Plan>;
  using Scalar = typename Model::Scalar;
  using State = typename PerSequence::State;
  using Parameters = typename State::Parameters;
  using Gradients = typename State::Gradients;
  using InputView = typename PerSequence::InputView;
  using OutputView = View<typename Model::Output>;
  using BatchInput = typename PerSequence::BatchInput;
  using BatchTarget = typename PerSequence::BatchTarget;
  using BatchInputView = typename PerSequence::BatchInputView;
  using BatchTargetView = typename PerSequence::BatchTargetView;
  /// The output of predict_batch().
  using BatchOutputView = MatrixView<Scalar, batch * Model::Output::rows, Model::Output::cols>;
  using Result = StepResult<Scalar>;
  using Options = typename Optimizer::Options;

  /// One optimizer step on a whole batch, as Trainer::step.
  template <class Clipping = NoClipping, class Masks = NoMask>
  Result step(Members& crew, BatchInputView inputs, BatchTargetView targets, const Options& options = {},
              const Clipping& clipping = {}, const Masks& masks = {},
              const Loss& loss = detail::default_loss<Loss, Masks>()) {
    if constexpr (detail::check_clipping<Clipping>() && detail::check_masks<Model, Masks, batch>()) {
      if (const Status status = load_weights(); status != Status::kOk) return Result::refused(status);
      for (auto& flag : turns_) flag.reset();
      for_each_sequence(crew, [&](int member, int sequence) {
        LossSum<Scalar> sum{.sum = 0};
        const Status status =
            differentiate(crew, member, sequence, Inputs::at(inputs, sequence),
                          Targets::at(targets, sequence), detail::mask_of(masks, sequence), loss, sum);
        losses_[sequence] = {sum.sum, sum.normalizer, status};
      });
      return finish(crew, options, clipping);
    }
  }

  /// A number in place of options is a compile error.
  Result step(Members&, BatchInputView, BatchTargetView, detail::PlainNumber auto number, const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }

  /// y[rows, cols] for x[rows, cols], by all members, as Trainer::predict. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Status predict(Members& crew, InputView x, OutputView y, const Mask& mask = {}) {
    if (const Status status = load_weights(); status != Status::kOk) return status;
    return predict_together(crew, x, y, mask);
  }
  /// The same for a whole batch, stacked, with masks as in step(). Outputs of refused sequences are not
  /// written, unless they are not finite. Returns the first error.
  template <class Masks = NoMask>
  Status predict_batch(Members& crew, BatchInputView inputs, BatchOutputView outputs,
                       const Masks& masks = {}) {
    detail::check_masks<Model, Masks, batch>();
    if (const Status status = load_weights(); status != Status::kOk) return status;
    for_each_sequence(crew, [&](int member, int sequence) {
      const auto x = Inputs::at(inputs, sequence);
      const auto y = outputs.template rows_at<Model::Output::rows>(sequence * Model::Output::rows);
      const auto& mask = detail::mask_of(masks, sequence);
      Status& status = losses_[sequence].status;
      if constexpr (kSharesSequences) {
        status = predict_together(crew, x, y, mask);
      } else {
        status = detail::status_of_output<Model>(predict_in(member, context_of(mask), x, y), mask, y);
      }
    });
    return first_error();
  }

  /// The tape of the last predict(), with attention weights. Not for models with dropout, which predict
  /// without a tape.
  [[nodiscard]] const typename Model::Tape& tape() const requires(!State::kDrops) { return tapes_[0]; }

  /// RAM of training. object() is sizeof(CrewTrainer), in which `state` has the crew's flags, too.
  [[nodiscard]] static constexpr MemoryReport memory() {
    MemoryReport report = PerSequence::memory();
    report.tape = kSequences * (detail::kBytes<typename Model::Tape> + sizeof(typename Model::Output));
    report.scratch = kMembers * detail::kBytes<Scratch>;
    return detail::report_of(sizeof(CrewTrainer), report);
  }

 private:
  friend TrainingLifecycle<CrewTrainer, State>;
  using Output = typename Model::Output;
  using Scratch = detail::EitherScratch<Model>;
  using BatchExecutor = typename Plan::template BatchExecutor<Model>;
  using Flag = typename Members::Flag;

  // Calls body(member, sequence) for each sequence of the batch.
  static void for_each_sequence(Members& crew, const auto& body) {
    if constexpr (kSharesSequences) {
      for (int sequence = 0; sequence < batch; ++sequence) body(0, sequence);
    } else {
      crew.for_each(batch, body);
    }
  }

  // Forward, loss and backward of a sequence: of a member, or shared by all.
  Status differentiate(Members& crew, int member, int sequence, const auto& x, const auto& target,
                       const auto& mask, const Loss& loss, LossSum<Scalar>& sum) {
    const auto forward = [&](const auto& slices) {
      return detail::forward_loss<Model>(context_of(mask, slices), weights(), x,
                                         View<Output>(outputs_[member]), target, loss, sum, detail::Unused{},
                                         tapes_[member], scratch_[member].training);
    };
    const auto backward = [&](const auto& slices) {
      detail::backward_in<Model>(context_of(mask, slices).in_order(), weights(), x, tapes_[member],
                                 ConstView<Output>(outputs_[member]), NoGradient{}, gradients_,
                                 scratch_[member].training);
    };
    if constexpr (kSharesSequences) {
      return pass_.run(crew, scratch_, [&](const auto& slices) {
        if (forward(slices) == Status::kOk) backward(slices);
      });
    } else {
      state_.masks.apply_to(tapes_[member], sequence);
      const Status status = forward(RunToCompletion{});
      RelayOrder<Flag> order(sequence > 0 ? &turns_[sequence - 1] : nullptr, turns_[sequence]);
      if (status != Status::kOk) {
        order.refuse();
      } else {
        backward(InBatchOrder(order));
        order.end();
      }
      return status;
    }
  }

  [[nodiscard]] Status first_error() const {
    for (const SequenceLoss& one : losses_) {
      if (one.status != Status::kOk) return one.status;
    }
    return Status::kOk;
  }
  // The optimizer's step, if no sequence was refused.
  Result finish(Members& crew, const Options& options, const auto& clipping) {
    if (const Status status = first_error(); status != Status::kOk) return refuse(status);
    LossSum<Scalar> total{.sum = 0, .normalizer = 0};
    for (const SequenceLoss& one : losses_) {
      total.sum += one.sum;
      total.normalizer += one.normalizer;
    }
    const Scalar norm = clipping.template norm<Scalar>(gradients_);
    const auto update = detail::begin_update<Loss>(state_, norm, total, options, clipping);
    if (!update.result.ok()) return refuse(update.result.status);
    (void)pass_.run(crew, scratch_, [&](const auto& slices) {
      detail::update_and_clear_all<Optimizer>(update.coefficients, state_.parameters, gradients_,
                                              state_.moments, Context(NoMask{}, slices));
    });
    executor_.invalidate();
    detail::count_step(state_, batch);
    return update.result;
  }
  Result refuse(Status status) {
    clear_gradients();
    return Result::refused(status);
  }
  void clear_gradients() { std::memset(static_cast<void*>(&gradients_), 0, sizeof gradients_); }

  Status load_weights() { return detail::load_weights(state_, executor_); }
  [[nodiscard]] const auto& weights() const { return executor_.weights(state_.parameters); }
  template <class Mask, class Slices = RunToCompletion>
  static constexpr auto context_of(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices = {}) {
    return detail::context_in_plan<Model, BatchExecutor>(mask, slices);
  }
  Status predict_in(int member, const AnyContext auto& context, InputView x, OutputView y) {
    return scratch_[member].predict(context, weights(), x, y, tapes_[member]);
  }
  Status predict_together(Members& crew, InputView x, OutputView y, const auto& mask) {
    const Status status = pass_.run(
        crew, scratch_, [&](const auto& slices) { (void)predict_in(0, context_of(mask, slices), x, y); });
    return detail::status_of_output<Model>(status, mask, y);
  }

  // For TrainingLifecycle.
  auto& own_tape() { return tapes_[0]; }
  void begin_at_state() {
    executor_.invalidate();
    clear_gradients();
  }

  // A LossSum that is zero before main.
  struct SequenceLoss {
    Scalar sum, normalizer;
    Status status;
  };

  State state_;
  Gradients gradients_;
  [[no_unique_address]] typename Model::Tape tapes_[std::size_t{kSequences}];
  Scratch scratch_[std::size_t{kMembers}];
  Output outputs_[std::size_t{kSequences}];
  [[no_unique_address]] BatchExecutor executor_;
  SequenceLoss losses_[std::size_t{batch}];
  Flag turns_[std::size_t{batch}];  // of sequences in backward
  CrewPass<Members> pass_;
};

}  // namespace ATTUNE_NAMESPACE
