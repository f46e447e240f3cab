// Training on all cores of a PC, with the same bits as a Trainer. Needs threads and a heap; never included by
// attune.hpp.
//
//   attune::host::ParallelTrainer<Model, attune::CrossEntropy<>, attune::AdamW, 64> trainer({.threads = 8});
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
//   const auto result = trainer.step(inputs, targets, {.learning_rate = 3e-3f});
//
// The sequences of a batch go to free threads. If there are fewer sequences than threads, the threads share
// each sequence (shared_slices.hpp), unless the model has dropout, or a tape of less than 256 KiB. Each
// leaves its gradients, summed from zero, in its own slot. Then the slots are added in the order of the
// batch, one part of the tensors after another. A layer that adds to a gradient more than once adds to the
// sum itself, one sequence after the other (execution/batch_order.hpp). So the bits depend neither on the
// number of threads nor on their order, and equal attune::Trainer's.
//
// A CrewTrainer over host::Threads has the same bits without slots, but its number of threads is part of its
// type. DistributedTrainer sends the slots' sums from rank to rank. Which is faster is not decided for small
// models and shared sequences (pc.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <attune/execution/batch_order.hpp>
#include <attune/execution/pass.hpp>
#include <attune/host/gradient_slots.hpp>
#include <attune/host/shared_slices.hpp>
#include <attune/host/thread_flag.hpp>
#include <attune/host/thread_pool.hpp>
#include <attune/training/trainer.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Options of a ParallelTrainer. They affect only speed and memory.
struct ParallelOptions {
  int threads = 0;  // 0: as many as the process may run at once
  /// Bytes for gradients of single sequences. There is at least one set per thread, and at most one per
  /// sequence of a batch. Fewer sets take less memory and make threads wait more. By default the sets stay in
  /// the threads' caches: 512 KiB per thread, at least two sets. Does not affect bits.
  std::optional<std::size_t> gradient_bytes = std::nullopt;
};

namespace detail {

/// A plan for a trainer on several threads: it keeps gradients, and its memory is not shared.
template <class Plan, class Model>
constexpr bool check_parallel_plan() {
  constexpr bool kParallel = attune::detail::TakesSequences<Plan, Model>;
  static_assert(attune::detail::Holds<kParallel>,
                "attune::host::ParallelTrainer: the plan must be BySequence or Int8Training; threads take "
                "one sequence at a time, keep its gradients, and share no memory");
  return kParallel;
}
template <class Plan, class Model>
concept ParallelPlan = check_parallel_plan<Plan, Model>();

}  // namespace detail

/// Trains `Model` on batches of `batch` sequences on several threads. Its interface is Trainer's, without
/// accumulate() and update(). `Plan` is BySequence, or Int8Training for products in integers. All large data
/// is on the heap, so a ParallelTrainer may be a local variable. Call its functions from one thread at a
/// time.
template <attune::detail::CheckedLayer Model, class Loss = MeanSquaredError, class Optimizer = AdamW,
          int batch = 1, class Plan = BySequence>
  requires attune::detail::CheckedLoss<Loss, typename Model::Output> &&
      attune::detail::CheckedOptimizer<Optimizer, typename Model::Parameters> &&
      detail::ParallelPlan<Plan, Model>
class ParallelTrainer
    : public TrainingLifecycle<ParallelTrainer<Model, Loss, Optimizer, batch, Plan>,
                               typename Trainer<Model, Loss, Optimizer, batch, Plan>::State> {
  // Whether threads may share a sequence: one large enough for them to wait for each other at every stage.
  static constexpr bool kSharesSequences =
      !attune::detail::DropsIn<typename Model::Tape> && sizeof(typename Model::Tape) >= 256 * 1024;
  static constexpr bool kAddsOnce = attune::detail::AddsOnce<Model>;
  using Inputs = attune::detail::InputsOf<Model, batch>;
  using Targets = attune::detail::TargetsOf<Loss, typename Model::Output, batch>;

 public:
  /// The trainer with the same bits on one thread, and on a device.
  using PerSequence = Trainer<Model, Loss, Optimizer, batch, Plan>;
  using Scalar = typename Model::Scalar;
  using State = typename PerSequence::State;
  using Parameters = typename State::Parameters;
  using Gradients = typename State::Gradients;
  using InputView = typename PerSequence::InputView;
  using OutputView = View<typename Model::Output>;
  using TargetView = typename PerSequence::TargetView;
  using BatchInput = typename PerSequence::BatchInput;
  using BatchTarget = typename PerSequence::BatchTarget;
  using BatchInputView = typename PerSequence::BatchInputView;
  using BatchTargetView = typename PerSequence::BatchTargetView;
  /// The output of predict() of a batch.
  using BatchOutputView = MatrixView<Scalar, batch * Model::Output::rows, Model::Output::cols>;
  using Result = StepResult<Scalar>;
  using Options = typename Optimizer::Options;

  /// Starts the threads. Parameters are zero until initialize() or load().
  explicit ParallelTrainer(const ParallelOptions& options = {})
      : pool_(options.threads),
        shared_(std::make_unique<Shared>()),
        workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(pool_.threads()))),
        slots_(pool_, detail::slots_for<Gradients>(batch, pool_.threads(), options.gradient_bytes)) {
    begin_at_state();
  }

  /// One optimizer step on a whole batch, as Trainer::step: inputs[batch·rows, cols] and targets stacked
  /// sequence after sequence. `masks` is one mask for all sequences, or a std::array or std::span with one
  /// for each. On an error nothing changes: no parameter and no moment, and the next step uses the same
  /// dropout masks.
  template <class Clipping = NoClipping, class Masks = NoMask>
  Result step(BatchInputView inputs, BatchTargetView targets, const Options& options = {},
              const Clipping& clipping = {}, const Masks& masks = {},
              const Loss& loss = attune::detail::default_loss<Loss, Masks>()) {
    if constexpr (attune::detail::check_clipping<Clipping>() &&
                  attune::detail::check_masks<Model, Masks, batch>()) {
      WholeBatch all{slots_.sum()};
      return step_over(all, inputs, targets, options, clipping, masks, loss);
    }
  }

  /// A number in place of options is a compile error.
  Result step(BatchInputView, BatchTargetView, attune::detail::PlainNumber auto number, const auto&...) {
    return attune::detail::number_for_options<Scalar>(number);
  }

  /// y[rows, cols] for x[rows, cols] with the current parameters and without dropout, on all threads
  /// (shared_slices.hpp). Returns a Status as Trainer::predict. If the model has no dropout, tape() then has
  /// its tape. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Status predict(InputView x, OutputView y, const Mask& mask = {}) {
    const Status status = load_weights();
    if (status != Status::kOk) return status;
    return attune::detail::status_of_output<Model>(predict_together(x, y, mask), mask, y);
  }
  /// The same for a whole batch, stacked, with masks as in step(). Runs as many sequences at a time as
  /// threads, and fewer sequences one after the other on all threads. Outputs of refused sequences are not
  /// written, unless they are not finite. Returns the first error.
  template <class Masks = NoMask>
  Status predict_batch(BatchInputView inputs, BatchOutputView outputs, const Masks& masks = {}) {
    attune::detail::check_masks<Model, Masks, batch>();
    if (const Status status = load_weights(); status != Status::kOk) return status;
    LossSum<Scalar>* const sequences = shared_->sequences;
    const auto predict_one = [&](int sequence, const auto& how) {
      const auto y = outputs.template rows_at<Model::Output::rows>(sequence * Model::Output::rows);
      const auto& mask = attune::detail::mask_of(masks, sequence);
      sequences[sequence].status =
          attune::detail::status_of_output<Model>(how(Inputs::at(inputs, sequence), y, mask), mask, y);
    };
    if (batch < pool_.threads()) {
      for (int sequence = 0; sequence < batch; ++sequence) {
        predict_one(sequence, [&](auto x, auto y, const auto& mask) { return predict_together(x, y, mask); });
      }
    } else {
      for_each_sequence(0, batch, [&](Worker& worker, int sequence) {
        predict_one(sequence,
                    [&](auto x, auto y, const auto& mask) { return predict_on(worker, x, y, mask); });
      });
    }
    const LossSum<Scalar>* const refused = std::find_if(
        sequences, sequences + batch - 1, [](const auto& of) { return of.status != Status::kOk; });
    return refused->status;
  }

  /// The tape of the last predict(), with attention weights. Not for models with dropout, which predict
  /// without a tape.
  [[nodiscard]] const typename Model::Tape& tape() const requires(!State::kDrops) { return workers_[0].tape; }
  [[nodiscard]] int threads() const { return pool_.threads(); }

  /// Memory of this training: tape and scratch of every thread, gradients of every slot.
  /// PerSequence::memory() is the memory of the same training on a device.
  [[nodiscard]] MemoryReport memory() const {
    const auto workers = static_cast<std::size_t>(pool_.threads());
    const auto sets = static_cast<std::size_t>(1 + slots_.count());
    MemoryReport report{
        .parameters = sizeof(Parameters) + BatchExecutor::memory().parameters,
        .gradients = sizeof(Gradients) * sets,
        .moments = attune::detail::kBytes<Moments>,
        .tape = workers * (attune::detail::kBytes<typename Model::Tape> + sizeof(typename Model::Output)),
        .scratch = workers * attune::detail::kBytes<Scratch>,
        .inputs = PerSequence::memory().inputs};
    report.state = sizeof(ParallelTrainer) + sizeof(Shared) + workers * sizeof(Worker) + slots_.bytes() -
                   report.object();
    return report;
  }

 protected:
  /// Losses of the first sequences of a batch. If one is refused, the status is the first one's, and there
  /// are no gradients.
  using Sums = LossSum<Scalar>;

  /// One step. This process computes the sequences [part.first(), part.end()). part.receive() gets the sums
  /// over all earlier sequences, and part.send() takes the sums up to here. Each consists of Sums and, if
  /// they are valid, the bytes of the gradients' sum, chunk after chunk. part.total(sums) returns the
  /// gradients' sum over the batch, and writes its Sums to `sums`.
  template <class Part, class Clipping, class Masks>
  Result step_over(Part& part, BatchInputView inputs, BatchTargetView targets, const Options& options,
                   const Clipping& clipping, const Masks& masks, const Loss& loss_of) {
    Shared& shared = *shared_;
    const Status ready = load_weights();
    slots_.begin_batch();
    Sums sums{.sum = 0, .normalizer = 0};
    if constexpr (!kAddsOnce) receive_all(part, sums);
    for (int sequence = part.first(); sequence < part.end(); ++sequence) flag_of(sequence).reset();
    int first = part.first();
    do {
      const int end = (std::min)(part.end(), first + slots_.count());
      const auto differentiate_on = [&](Worker* worker, int sequence) {
        LossSum<Scalar>& sum = shared.sequences[static_cast<std::size_t>(sequence)];
        sum.status = sums.status == Status::kOk ? ready : sums.status;
        if (sum.status != Status::kOk) return;
        AdditionOrder<ThreadFlag> order(sequence > part.first() ? &flag_of(sequence - 1) : nullptr,
                                        flag_of(sequence), slots_.to_sum(sequence - first));
        differentiate(worker, sequence, slots_.slot(sequence - first), order, Inputs::at(inputs, sequence),
                      Targets::at(targets, sequence), attune::detail::mask_of(masks, sequence), loss_of, sum);
      };
      if (kSharesSequences && end - first < pool_.threads()) {
        for (int sequence = first; sequence < end; ++sequence) differentiate_on(nullptr, sequence);
      } else {
        for_each_sequence(first, end,
                          [&](Worker& worker, int sequence) { differentiate_on(&worker, sequence); });
      }
      add_sequences(part, first, end, sums);
      first = end;
    } while (first < part.end() && sums.status == Status::kOk);
    Gradients& gradients = part.total(sums);
    if (sums.status != Status::kOk) return Result::refused(sums.status);
    const Scalar norm = clipping.template norm<Scalar>(gradients);
    const auto update = attune::detail::begin_update<Loss>(shared.state, norm, sums, options, clipping);
    if (update.result.ok()) {
      slots_.template update<Optimizer>(update.coefficients, shared.state, gradients);
      shared.executor.invalidate();
      attune::detail::count_step(shared.state, batch);
    }
    return update.result;
  }

  /// The sum of the gradients up to here; free once all sequences here have been added.
  Gradients& sum_here() { return slots_.sum(); }
  /// A set that is free once all sequences here have been added.
  Gradients& spare() { return slots_.slot(0); }

 private:
  friend TrainingLifecycle<ParallelTrainer, State>;
  using Moments = typename State::Moments;
  using Scratch = attune::detail::EitherScratch<Model>;
  using BatchExecutor = typename Plan::template BatchExecutor<Model>;

  // A batch in this process alone, without earlier or later sequences.
  struct WholeBatch {
    Gradients& gradients;
    static constexpr int first() { return 0; }
    static constexpr int end() { return batch; }
    static constexpr std::size_t chunk_bytes() { return sizeof(Gradients); }
    static void receive(Sums&) {}
    static void receive(std::span<std::byte>) {}
    static void send(const Sums&) {}
    static void send(std::span<std::byte>) {}
    Gradients& total(Sums&) { return gradients; }
  };

  struct Shared {
    State state;
    [[no_unique_address]] BatchExecutor executor;  // the weights that products read, if the plan has its own
    LossSum<Scalar> sequences[static_cast<std::size_t>(batch)];
  };
  // A thread's memory for one sequence; no two threads share a cache line.
  struct alignas(detail::kCacheLine) Worker {
    [[no_unique_address]] typename Model::Tape tape;
    [[no_unique_address]] Scratch scratch;
    typename Model::Output output;  // y, then dL/dy
  };

  // Calls body(worker, sequence) for first ≤ sequence < end, each on some thread.
  template <class Body>
  void for_each_sequence(int first, int end, const Body& body) {
    pool_.for_each(end - first, [&](int thread, int index) {
      body(workers_[static_cast<std::size_t>(thread)], first + index);
    });
  }

  // Forward, loss and backward of one sequence, on a thread, or without a worker on all threads.
  template <class Mask>
  void differentiate(Worker* alone, int sequence, Gradients& gradients, AdditionOrder<ThreadFlag>& order,
                     InputView x, TargetView target, const Mask& mask, const Loss& loss,
                     LossSum<Scalar>& sum) {
    const auto forward = [&](Worker& worker, const auto& slices) {
      return attune::detail::forward_loss<Model>(
          context_of(mask, slices), weights(), x, OutputView(worker.output), target, loss, sum,
          attune::detail::Unused{}, worker.tape, worker.scratch.training);
    };
    const auto backward = [&](Worker& worker, const auto& slices, Gradients& to) {
      attune::detail::backward_in<Model>(context_of(mask, slices).in_order(), weights(), x, worker.tape,
                                         ConstView<typename Model::Output>(worker.output), NoGradient{}, to,
                                         worker.scratch.training);
    };
    if constexpr (kSharesSequences) {
      if (alone == nullptr) {
        Gradients& to = kAddsOnce ? gradients : slots_.sum();
        sum.status = pass_.run(workers_.get(), [&](const SharedSlices& slices) {
          if (forward(workers_[0], slices) == Status::kOk) backward(workers_[0], slices, to);
        });
        return;
      }
    }
    shared_->state.masks.apply_to(alone->tape, sequence);
    sum.status = forward(*alone, RunToCompletion{});
    if (sum.status != Status::kOk) return order.refuse();
    if constexpr (kAddsOnce) {
      backward(*alone, RunToCompletion{}, gradients);
    } else {
      backward(*alone, InBatchOrder(order), gradients);
    }
    order.end();
  }

  // Receives the sums over all earlier sequences, before the first one here adds to them.
  template <class Part>
  void receive_all(Part& part, Sums& sums) {
    part.receive(sums);
    for (std::size_t at = 0; at < sizeof(Gradients) && sums.status == Status::kOk; at += part.chunk_bytes())
      part.receive(slots_.chunk(at, part.chunk_bytes()));
  }
  // Adds the sequences [first, end) from the slots, in the order of the batch.
  template <class Part>
  void add_sequences(Part& part, int first, int end, Sums& sums) {
    const bool begins = kAddsOnce && first == part.first();
    if (begins) part.receive(sums);
    const bool received = begins && sums.status == Status::kOk;
    for (int sequence = first; sequence < end && sums.status == Status::kOk; ++sequence) {
      const LossSum<Scalar>& one = shared_->sequences[static_cast<std::size_t>(sequence)];
      sums.status = one.status;
      if (sums.status != Status::kOk) break;
      sums.sum += one.sum;
      sums.normalizer += one.normalizer;
    }
    const bool sound = sums.status == Status::kOk, ends = end == part.end() || !sound;
    if (ends) part.send(sums);
    for (std::size_t begin = 0; begin < sizeof(Gradients); begin += part.chunk_bytes()) {
      const auto chunk = slots_.chunk(begin, part.chunk_bytes());
      if (received) part.receive(chunk);
      if (sound) slots_.add(end - first, begin, begin + chunk.size());
      if (sound && ends) part.send(chunk);
    }
  }

  Status load_weights() { return attune::detail::load_weights(shared_->state, shared_->executor); }
  [[nodiscard]] const auto& weights() const { return shared_->executor.weights(shared_->state.parameters); }

  template <class Mask, class Slices>
  static constexpr auto context_of(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices) {
    return attune::detail::context_in_plan<Model, BatchExecutor>(mask, slices);
  }
  ThreadFlag& flag_of(int sequence) { return flags_[static_cast<std::size_t>(sequence)]; }

  template <class Mask, class Slices = RunToCompletion>
  Status predict_on(Worker& worker, InputView x, OutputView y, const Mask& mask, const Slices& slices = {}) {
    return worker.scratch.predict(context_of(mask, slices), weights(), x, y, worker.tape);
  }
  template <class Mask>
  Status predict_together(InputView x, OutputView y, const Mask& mask) {
    if (pool_.threads() == 1) return predict_on(workers_[0], x, y, mask);
    return pass_.run(workers_.get(),
                     [&](const SharedSlices& slices) { (void)predict_on(workers_[0], x, y, mask, slices); });
  }

  // For TrainingLifecycle.
  static auto& own_state(auto& self) { return self.shared_->state; }
  auto& own_tape() { return workers_[0].tape; }
  void begin_at_state() { shared_->executor.invalidate(); }

  ThreadPool pool_;
  SharedPass pass_{pool_};
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Worker[]> workers_;
  std::unique_ptr<ThreadFlag[]> flags_ = std::make_unique<ThreadFlag[]>(batch);  // of sequences
  detail::GradientSlots<Gradients, Scalar> slots_;
};

/// @cond
// The same for const types.
template <attune::detail::CheckedLayer Model, class Loss, class Optimizer, int batch, class Plan>
  requires attune::detail::CheckedLoss<Loss, typename Model::Output> &&
      attune::detail::CheckedOptimizer<Optimizer, typename Model::Parameters> &&
      detail::ParallelPlan<Plan, Model> && attune::detail::SomeConst<Model, Loss, Optimizer, Plan>
class ParallelTrainer<Model, Loss, Optimizer, batch, Plan>
    : public ParallelTrainer<std::remove_const_t<Model>, std::remove_const_t<Loss>,
                             std::remove_const_t<Optimizer>, batch, std::remove_const_t<Plan>> {
  using Base = ParallelTrainer<std::remove_const_t<Model>, std::remove_const_t<Loss>,
                               std::remove_const_t<Optimizer>, batch, std::remove_const_t<Plan>>;

 public:
  using Base::Base;
};
/// @endcond

}  // namespace ATTUNE_NAMESPACE::host
