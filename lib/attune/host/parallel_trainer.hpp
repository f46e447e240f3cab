// Training on all cores of a PC, to the bits of a Trainer. Needs threads and a heap; never included by
// attune.hpp.
//
//   attune::host::ParallelTrainer<Model, attune::CrossEntropy<>, attune::AdamW, 64> trainer({.threads = 8});
//   trainer.initialise(attune::XavierUniform{}, attune::Rng{42});
//   const auto result = trainer.step(inputs, targets, {.learning_rate = 3e-3f});
//
// The sequences of a batch go to whichever thread is free; each leaves its gradient, from zero, in a slot of
// its own. Then part after part of all tensors is added up, slot after slot in the order of the batch. So
// the bits depend neither on the number of threads nor on who computed what, and they are those of
// attune::Trainer, one sequence after the other. (But a sum over more tokens than
// kernels::kDepthBlock, or a tensor that backward adds to more than once, is first added up within its
// sequence here: any number of threads still gives the same bits, but Trainer's may be others.)
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <attune/core/true_length.hpp>
#include <attune/host/shared_pieces.hpp>
#include <attune/host/thread_pool.hpp>
#include <attune/kernels/residual.hpp>
#include <attune/training/trainer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host {

/// How a ParallelTrainer works; only speed and memory depend on it.
struct ParallelOptions {
  int threads = 0;  // 0: as many as the process may run at once
  /// For gradients of single sequences. At least a set for every thread is kept, at most one for every
  /// sequence of a batch; in between, fewer are less memory and more waiting. Unless told, they are what
  /// stays in the threads' caches: 512 KiB of each, two sets or more. No bit depends on it.
  std::optional<std::size_t> gradient_bytes = std::nullopt;
};

/// What the first sequences of a batch add up to, beside their gradients.
template <class Scalar>
struct BatchSums {
  Scalar loss;
  Scalar normaliser;  // what the loss is divided by
  Status status;      // of the first of them that is refused; there are then no gradients
};

/// Trains `Model` on batches of `batch` sequences on several threads. What a Trainer takes and gives, this
/// does too, but for accumulate() and update(). Everything that is large is on the heap: a ParallelTrainer
/// may be a local variable. Its functions are called from one thread at a time.
template <attune::detail::CheckedLayer Model, class Loss = MeanSquaredError, class Optimizer = AdamW,
          int batch = 1>
  requires attune::detail::CheckedLoss<Loss, typename Model::Output> &&
      attune::detail::CheckedOptimizer<Optimizer, typename Model::Parameters>
class ParallelTrainer
    : public StartsTraining<ParallelTrainer<Model, Loss, Optimizer, batch>, TrainingState<Model, Optimizer>> {
  static constexpr bool kDrops = attune::detail::kDropsIn<typename Model::Tape>;
  using Inputs = attune::detail::InputsOf<Model, batch>;
  using Targets = attune::detail::TargetsOf<Loss, typename Model::Output, batch>;

 public:
  /// What has the same bits on one thread, and on a device.
  using OneByOne = Trainer<Model, Loss, Optimizer, batch>;
  using Scalar = typename Model::Scalar;
  using Parameters = typename Model::Parameters;
  using State = TrainingState<Model, Optimizer>;
  using InputView = typename OneByOne::InputView;
  using OutputView = View<typename Model::Output>;
  using TargetView = typename OneByOne::TargetView;
  using BatchInput = typename OneByOne::BatchInput;
  using BatchTarget = typename OneByOne::BatchTarget;
  using BatchInputView = typename OneByOne::BatchInputView;
  using BatchTargetView = typename OneByOne::BatchTargetView;
  /// What predict() of a batch writes.
  using BatchOutputView = MatrixView<Scalar, batch * Model::Output::rows, Model::Output::cols>;
  using Result = StepResult<Scalar>;
  using Options = typename Optimizer::Options;
  using Outcome = attune::detail::Outcome<Model>;  // void, or a Status where ids can be refused

  /// Starts the threads. Parameters are zero until initialise() or load().
  explicit ParallelTrainer(const ParallelOptions& options = {})
      : pool_(options.threads),
        slot_count_(slots_for(pool_.threads(), options.gradient_bytes)),
        shared_(std::make_unique<Shared>()),
        workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(pool_.threads()))),
        slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(slot_count_))) {
    Rng rng{0};
    restart(rng);
  }

  /// One optimiser step on a whole batch, as Trainer::step: inputs[batch·rows, cols] and targets stacked,
  /// sequence after sequence; one mask for all sequences, or a std::array or std::span with one for each.
  /// When status is not kOk nothing has changed: no parameter, no moment, and the next step has the masks of
  /// dropout that this one had.
  template <class Clipping = NoClipping, class Masks = NoMask>
  Result step(BatchInputView inputs, BatchTargetView targets, const Options& options,
              const Clipping& clipping = {}, const Masks& masks = {}, const Loss& loss = {}) {
    if constexpr (attune::detail::check_clipping<Clipping>()) {
      attune::detail::check_masks<Model, Masks, batch>();
      WholeBatch all{shared_->gradients};
      return step_over(all, inputs, targets, options, clipping, masks, loss);
    }
  }

  /// y[rows, cols] for x[rows, cols] with the parameters as they are, on all threads (shared_pieces.hpp);
  /// nothing is dropped. A Status where the model takes token ids, void elsewhere. Without dropout in the
  /// model, tape() then has what it kept. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Outcome predict(InputView x, OutputView y, const Mask& mask = {}) {
    attune::detail::check_mask<Model, Mask>();
    return static_cast<Outcome>(predict_together(x, y, mask));
  }
  /// The same for a whole batch, stacked, with masks as step(): as many sequences as threads at a time; of
  /// fewer than threads, one after the other on all of them. Outputs of sequences that are refused are not
  /// written; the Status is that of the first of them.
  template <class Masks = NoMask>
  Outcome predict_batch(BatchInputView inputs, BatchOutputView outputs, const Masks& masks = {}) {
    attune::detail::check_masks<Model, Masks, batch>();
    auto& statuses = shared_->statuses;
    const auto predict_one = [&](int sequence, const auto& how) {
      statuses[sequence] = how(Inputs::at(inputs, sequence),
                               outputs.template rows_at<Model::Output::rows>(sequence * Model::Output::rows),
                               attune::detail::mask_of(masks, sequence));
    };
    if (batch < pool_.threads()) {
      for (int sequence = 0; sequence < batch; ++sequence) {
        predict_one(sequence, [&](auto x, auto y, const auto& mask) { return predict_together(x, y, mask); });
      }
    } else {
      for_each_sequence(0, batch, [&](Worker& worker, int sequence) {
        predict_one(sequence, [&](auto x, auto y, const auto& mask) {
          return predict_on(worker, x, y, mask, InOneGo{});
        });
      });
    }
    const Status* refused =
        std::find_if_not(statuses, statuses + batch - 1, [](Status status) { return status == Status::kOk; });
    return static_cast<Outcome>(*refused);
  }

  [[nodiscard]] const Parameters& parameters() const { return shared_->state.parameters; }
  /// What the last predict() kept: attention weights among it. Not of a model with dropout, which predicts
  /// without a tape.
  [[nodiscard]] const typename Model::Tape& tape() const requires(!kDrops) { return workers_[0].tape; }
  [[nodiscard]] int threads() const { return pool_.threads(); }

  /// Memory of training here: tape and scratch of every thread, gradients of every slot. What the same
  /// training takes on a device is OneByOne::memory().
  [[nodiscard]] MemoryReport memory() const {
    const auto workers = static_cast<std::size_t>(pool_.threads());
    const std::size_t slots = static_cast<std::size_t>(slot_count_) * sizeof(Slot);
    MemoryReport report{
        .parameters = sizeof(Parameters),
        .gradients = sizeof(Parameters) * (1 + static_cast<std::size_t>(slot_count_)),
        .moments = attune::detail::kBytes<Moments>,
        .tape = workers * (attune::detail::kBytes<typename Model::Tape> + sizeof(typename Model::Output)),
        .scratch = workers * attune::detail::kBytes<Scratch>,
        .inputs = OneByOne::memory().inputs};
    report.state =
        sizeof(ParallelTrainer) + sizeof(Shared) + workers * sizeof(Worker) + slots - report.object();
    return report;
  }

 protected:
  /// Loss, normaliser and status of a batch.
  using Sums = BatchSums<Scalar>;

  /// One step of which the sequences [part.first(), part.end()) are computed here. part.receive() gets what
  /// those before add up to, part.send() takes the same of all up to here: first Sums, then, if those are
  /// sound, the bytes of the gradients' sum, chunk after chunk. part.total(sums) is the gradients' sum over
  /// the batch, of which the Sums go to `sums`.
  template <class Part, class Clipping, class Masks>
  Result step_over(Part& part, BatchInputView inputs, BatchTargetView targets, const Options& options,
                   const Clipping& clipping, const Masks& masks, const Loss& loss_of) {
    Shared& shared = *shared_;
    if (!shared.clear) clear_gradients();
    shared.clear = false;
    Sums sums{};
    int first = part.first();
    do {
      const int end = (std::min)(part.end(), first + slot_count_);
      for_each_sequence(first, end, [&](Worker& worker, int sequence) {
        differentiate(worker, sequence, slots_[static_cast<std::size_t>(sequence - first)].gradients, inputs,
                      targets, attune::detail::mask_of(masks, sequence), loss_of);
      });
      const bool begins = first == part.first();
      if (begins) part.receive(sums);
      const bool received = begins && sums.status == Status::kOk;
      for (int sequence = first; sequence < end && sums.status == Status::kOk; ++sequence) {
        const auto index = static_cast<std::size_t>(sequence);
        sums.status = shared.statuses[index];
        if (sums.status != Status::kOk) break;
        sums.loss += shared.losses[index];
        sums.normaliser += shared.normalisers[index];
      }
      const bool sound = sums.status == Status::kOk, ends = end == part.end() || !sound;
      if (ends) part.send(sums);
      for (std::size_t begin = 0; begin < sizeof(Parameters); begin += part.chunk_bytes()) {
        const auto chunk = chunk_of(shared.gradients, begin, part.chunk_bytes());
        if (received) part.receive(chunk);
        if (sound) add_slots(end - first, begin, begin + chunk.size());
        if (sound && ends) part.send(chunk);
      }
      first = end;
    } while (first < part.end() && sums.status == Status::kOk);
    Parameters& gradients = part.total(sums);
    if (sums.status != Status::kOk) return Result::refused(sums.status);
    const auto gradient = attune::detail::BatchGradient<Scalar>::template of<Loss, Optimizer>(
        gradients, options, clipping, sums.loss, sums.normaliser);
    if (gradient.status != Status::kOk) return Result::refused(gradient.status);
    update(gradients, Optimizer::advance(shared.state.moments, options, gradient.scale * gradient.factor));
    shared.clear = true;
    shared.trained += batch;
    attune::detail::count_step(shared.state, batch);
    return {sums.loss * gradient.scale, Status::kOk, gradient.norm};
  }

  /// The bytes of a set from `begin` on, at most so many.
  static std::span<std::byte> chunk_of(Parameters& set, std::size_t begin, std::size_t most) {
    const auto bytes = std::as_writable_bytes(std::span(&set, 1));
    return bytes.subspan(begin, (std::min)(most, bytes.size() - begin));
  }
  /// The sum of the gradients up to here; a set that is free when all sequences here have been added.
  Parameters& sum_here() { return shared_->gradients; }
  /// A set that is free when all sequences here have been added.
  Parameters& spare() { return slots_[0].gradients; }

 private:
  friend StartsTraining<ParallelTrainer, State>;
  using Moments = typename Optimizer::template Moments<Parameters>;
  using Scratch = attune::detail::EitherScratch<Model>;
  static constexpr std::size_t kCacheLine = 64;

  // No sequences before this process's, and none behind.
  struct WholeBatch {
    Parameters& gradients;
    static constexpr int first() { return 0; }
    static constexpr int end() { return batch; }
    static constexpr std::size_t chunk_bytes() { return sizeof(Parameters); }
    static void receive(Sums&) {}
    static void receive(std::span<std::byte>) {}
    static void send(const Sums&) {}
    static void send(std::span<std::byte>) {}
    Parameters& total(Sums&) { return gradients; }
  };

  struct Shared {
    alignas(kCacheLine) Parameters gradients;  // their sum over the batch
    State state;
    bool clear;  // gradients and all slots are zero, as where a step begins
    Scalar losses[static_cast<std::size_t>(batch)];
    Scalar normalisers[static_cast<std::size_t>(batch)];
    Status statuses[static_cast<std::size_t>(batch)];
    std::int64_t trained;  // sequences since the tapes stood where their worker's `masks` is 0
  };
  // The gradient of a sequence.
  struct alignas(kCacheLine) Slot {
    Parameters gradients;
  };
  // What a thread computes a sequence in; no two threads share a line of the cache.
  struct alignas(kCacheLine) Worker {
    [[no_unique_address]] typename Model::Tape tape;
    [[no_unique_address]] Scratch scratch;
    typename Model::Output output;  // y, then dL/dy
    std::int64_t masks;             // the sequence, of all that are trained, whose masks the tape stands at
  };

  // body(worker, sequence) for first ≤ sequence < end, each on some thread.
  template <class Body>
  void for_each_sequence(int first, int end, const Body& body) {
    pool_.for_each(end - first, [&](int thread, int index) {
      body(workers_[static_cast<std::size_t>(thread)], first + index);
    });
  }

  // Forward, loss and backward of one sequence.
  template <class Mask>
  void differentiate(Worker& worker, int sequence, Parameters& gradients, BatchInputView inputs,
                     BatchTargetView targets, const Mask& mask, const Loss& loss_of) {
    using Output = typename Model::Output;
    Shared& shared = *shared_;
    const auto index = static_cast<std::size_t>(sequence);
    const InputView x = Inputs::at(inputs, sequence);
    const std::int64_t number = shared.trained + sequence;
    skip_masks(worker.tape, number - worker.masks);
    worker.masks = number;
    Status& status = shared.statuses[index];
    const auto pieces = attune::detail::pieces_of<Model>(mask);
    status = attune::detail::forward_status<Model>(pieces, mask, shared.state.parameters, x,
                                                   OutputView(worker.output), worker.tape,
                                                   worker.scratch.training);
    if (status != Status::kOk) return;
    attune::detail::clear_behind(pieces, OutputView(worker.output));
    const LossSum<Scalar> loss = loss_of.sum(ConstView<Output>(worker.output), Targets::at(targets, sequence),
                                             OutputView(worker.output));
    status =
        loss.status != Status::kOk || attune::detail::finite(loss.sum) ? loss.status : Status::kNotFinite;
    if (status != Status::kOk) return;
    shared.losses[index] = loss.sum;
    shared.normalisers[index] = loss.normaliser;
    attune::detail::backward_in<Model>(pieces, mask, shared.state.parameters, x, worker.tape,
                                       ConstView<typename Model::Output>(worker.output), NoGradient{},
                                       gradients, worker.scratch.training);
    worker.masks = number + 1;
  }

  // gradients += slot 0, then slot 1, …, of what is in the bytes [begin, end) of a set, and the slots are
  // zero there; all slots for one part of it at a time.
  void add_slots(int count, std::size_t begin, std::size_t end) {
    for_each_part(begin, end, [&](std::size_t from, std::size_t to) {
      const std::size_t first = from / sizeof(Scalar), size = (to - from) / sizeof(Scalar);
      for (int slot = 0; slot < count; ++slot) {
        kernels::move_to(
            static_cast<int>(size),
            attune::detail::scalars_of<Scalar>(slots_[static_cast<std::size_t>(slot)].gradients) + first,
            attune::detail::scalars_of<Scalar>(shared_->gradients) + first);
      }
    });
  }
  // The optimiser's step with gradients that are then zero, on all threads.
  void update(Parameters& gradients, const typename Optimizer::Coefficients& coefficients) {
    State& state = shared_->state;
    for_each_part(0, sizeof(Parameters), [&](std::size_t from, std::size_t to) {
      Optimizer::for_each_with_moments(
          [&](const TensorPath& path, auto& p, auto& g, auto&... moment) {
            const auto [first, size] = part_of(p, state.parameters, from, to);
            if (size == 0) return;
            attune::detail::update_and_clear<Optimizer>(coefficients, path.kind, size, p.data() + first,
                                                        g.data() + first, (moment.data() + first)...);
          },
          state.moments, state.parameters, gradients);
    });
  }
  struct PartOfTensor {
    int first, size;
  };
  // What is in the bytes [from, to) of a set, of a tensor of it.
  static PartOfTensor part_of(const auto& tensor, const Parameters& set, std::size_t from, std::size_t to) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(tensor.data()) -
                                             reinterpret_cast<const std::byte*>(&set));
    const auto index_of = [&](std::size_t byte) {
      const std::size_t end = at + sizeof(Scalar) * static_cast<std::size_t>(tensor.size);
      return static_cast<int>((std::clamp(byte, at, end) - at) / sizeof(Scalar));
    };
    return {index_of(from), index_of(to) - index_of(from)};
  }
  // body(from, to) for parts of the bytes [begin, end) of a set that fit the first cache, each on some
  // thread. Too little for two parts is not shared out.
  template <class Body>
  void for_each_part(std::size_t begin, std::size_t end, const Body& body) {
    const std::size_t lines = (end - begin + kCacheLine - 1) / kCacheLine,
                      parts = std::clamp<std::size_t>((end - begin) >> 14, 1, 64);
    pool_.for_each(static_cast<int>(parts), [&](int, int number) {
      const auto part = static_cast<std::size_t>(number);
      body(begin + lines * part / parts * kCacheLine,
           (std::min)(end, begin + lines * (part + 1) / parts * kCacheLine));
    });
  }
  template <class Mask>
  Status predict_on(Worker& worker, InputView x, OutputView y, const Mask& mask, const auto& pieces) {
    return worker.scratch.predict(mask, shared_->state.parameters, x, y, worker.tape, pieces);
  }
  template <class Mask>
  Status predict_together(InputView x, OutputView y, const Mask& mask) {
    if (pool_.threads() == 1) return predict_on(workers_[0], x, y, mask, InOneGo{});
    return pass_.run(workers_.get(),
                     [&](const SharedPieces& pieces) { (void)predict_on(workers_[0], x, y, mask, pieces); });
  }

  // As many sets of gradients as sequences are computed in before they are added up.
  static int slots_for(int threads, std::optional<std::size_t> bytes) {
    const auto count = static_cast<std::size_t>(threads);
    const std::size_t in_cache = (std::max)(std::size_t{2}, (std::size_t{1} << 19) / sizeof(Slot));
    const std::size_t slots = bytes ? *bytes / sizeof(Slot) : count * in_cache;
    return static_cast<int>((std::min<std::size_t>)(batch, (std::max)(count, slots)));
  }

  void clear_gradients() {
    set_zero(shared_->gradients);
    for (int slot = 0; slot < slot_count_; ++slot) set_zero(slots_[static_cast<std::size_t>(slot)].gradients);
  }

  // What StartsTraining asks for.
  State& own_state() { return shared_->state; }
  [[nodiscard]] const State& own_state() const { return shared_->state; }
  void restart(Rng& rng) {
    attune::detail::restart(shared_->state, rng);
    draw_seeds(workers_[0].tape, rng);
    begin_at_state();
  }
  // All threads have the same masks.
  void begin_at_state() {
    shared_->trained = 0;
    for (int thread = 0; thread < pool_.threads(); ++thread) {
      Worker& worker = workers_[static_cast<std::size_t>(thread)];
      attune::detail::stand_at_masks(shared_->state, worker.tape);
      worker.masks = 0;
    }
  }

  ThreadPool pool_;
  SharedPass pass_{pool_};
  const int slot_count_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Worker[]> workers_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::host
