// Training on several machines, with the same bits as a Trainer. Needs threads and a heap; never included by
// attune.hpp.
//
//   attune::host::MpiRanks ranks;  // host/mpi.hpp
//   attune::host::DistributedTrainer<Model, attune::CrossEntropy<>, attune::AdamW, 64> trainer(ranks);
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
//   const auto result = trainer.step(inputs, targets, {.learning_rate = 3e-3f});
//
// Every rank runs the same program. Rank r of n computes the sequences from ⌊r·batch/n⌋ up to ⌊(r+1)·batch/n⌋
// of a batch, on its threads. Then the sum of the gradients travels from rank to rank, and each rank adds its
// sequences in the order of the batch. The sum therefore equals one sequence after the other; no all-reduce
// guarantees this. The last rank has the sum over the batch and sends it around once more. Every rank takes
// the optimizer's step with it.
//
// Both rounds use chunks, so that all ranks add and send at the same time. Each link of the ring carries the
// gradients twice, as in a ring all-reduce (Patarasuk and Yuan, 2009).
//
// If a layer adds to a gradient more than once for each sequence (Additions, execution/layer.hpp), its
// additions follow the additions of all earlier sequences. A rank then receives the sum before it starts, and
// ranks take turns.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include <attune/host/parallel_trainer.hpp>
#include <attune/host/ranks.hpp>
#include <attune/host/whole_file.hpp>
#include <attune/training/self_test.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Options of a DistributedTrainer. They affect only speed and memory.
struct DistributedOptions {
  int threads = 0;  // per rank; 0: all that the process may run. Set it if ranks share a machine
  std::size_t gradient_bytes = std::size_t{64} << 20;  // per rank, as in ParallelOptions
  int compare_every = 100;                             // steps between comparisons; 0: only at the first
                                                       // step, and after a resume
  std::size_t chunk_bytes = std::size_t{1} << 15;      // added and sent at a time; does not affect bits
};

namespace detail {

/// The gradients' path through the ring, as a part of ParallelTrainer::step_over. This rank computes the
/// sequences [first, end).
template <class Parameters, class Sums>
class PartOfRing {
 public:
  PartOfRing(Ranks& ranks, int batch, std::size_t chunk_bytes, Parameters& sum, Parameters& spare)
      : ranks_(ranks), batch_(batch), chunk_bytes_(chunk_bytes), sum_(sum), spare_(spare) {}

  [[nodiscard]] int first() const { return begin_of(ranks_.rank()); }
  [[nodiscard]] int end() const { return begin_of(ranks_.rank() + 1); }
  [[nodiscard]] std::size_t chunk_bytes() const { return chunk_bytes_; }

  void receive(Sums& sums) {
    if (ranks_.rank() > 0) ranks_.receive(bytes_of(sums));
  }
  void receive(std::span<std::byte> chunk) {
    if (ranks_.rank() > 0) {
      ranks_.receive(chunk);
    } else {
      std::memset(chunk.data(), 0, chunk.size());
    }
  }
  // From the last rank these are the totals, on their second round.
  void send(const Sums& sums) {
    sent_ = sums;
    if (ranks_.size() > 1) ranks_.send(bytes_of(sent_));
  }
  void send(std::span<const std::byte> chunk) {
    if (ranks_.size() > 1) ranks_.send(chunk);
  }
  Parameters& total(Sums& sums) {
    if (!ranks_.is_last()) {
      const bool passes_on = ranks_.rank() + 2 < ranks_.size();  // the last rank already has it
      ranks_.receive(bytes_of(sums));
      if (passes_on) ranks_.send(bytes_of(sums));
      const auto bytes = std::as_writable_bytes(std::span(&spare_, 1));
      for (std::size_t at = 0; at < bytes.size() && sums.status == Status::kOk; at += chunk_bytes_) {
        const auto chunk = bytes.subspan(at, (std::min)(chunk_bytes_, bytes.size() - at));
        ranks_.receive(chunk);
        if (passes_on) ranks_.send(chunk);
      }
    }
    ranks_.settle();
    return ranks_.is_last() ? sum_ : spare_;
  }

 private:
  [[nodiscard]] int begin_of(int rank) const {
    return static_cast<int>(std::int64_t{batch_} * rank / ranks_.size());
  }
  static std::span<std::byte> bytes_of(Sums& sums) { return std::as_writable_bytes(std::span(&sums, 1)); }

  Ranks& ranks_;
  const int batch_;
  const std::size_t chunk_bytes_;
  Parameters& sum_;    // of the sequences up to here
  Parameters& spare_;  // for the batch's sum: parts of `sum_` still being sent must not change
  Sums sent_{};
};

}  // namespace detail

/// Trains `Model` on batches of `batch` sequences on all ranks together. The interface is ParallelTrainer's;
/// predictions are local to each rank. `Plan` is BySequence or Int8Training. All ranks must call
/// initialize(), start_from(), load() and resume() with equal arguments, and step() equally often with equal
/// options, masks and loss. Each rank reads only the sequences [first_sequence(), end_sequence()) of a batch.
/// All ranks must have the same byte order.
template <attune::detail::CheckedLayer Model, class Loss = MeanSquaredError, class Optimizer = AdamW,
          int batch = 1, class Plan = BySequence>
class DistributedTrainer : private ParallelTrainer<Model, Loss, Optimizer, batch, Plan> {
  using OnOneMachine = ParallelTrainer<Model, Loss, Optimizer, batch, Plan>;
  using TestOfPlan =
      std::conditional_t<attune::detail::OwnsWeights<typename Plan::template BatchExecutor<Model>>,
                         Int8SelfTest, SelfTest>;

 public:
  using typename OnOneMachine::BatchInput;
  using typename OnOneMachine::BatchInputView;
  /// The output of predict() of a batch.
  using typename OnOneMachine::BatchOutputView;
  using typename OnOneMachine::BatchTarget;
  using typename OnOneMachine::BatchTargetView;
  using typename OnOneMachine::Gradients, typename OnOneMachine::Parameters;
  using typename OnOneMachine::InputView;
  using typename OnOneMachine::Options;
  using typename OnOneMachine::OutputView;
  using typename OnOneMachine::PerSequence;
  using typename OnOneMachine::Result;
  using typename OnOneMachine::Scalar;
  using typename OnOneMachine::State;
  using typename OnOneMachine::TargetView;

  using OnOneMachine::initialize;
  using OnOneMachine::load;
  using OnOneMachine::memory;
  using OnOneMachine::parameters;
  using OnOneMachine::predict;
  using OnOneMachine::predict_batch;
  using OnOneMachine::resume;
  using OnOneMachine::start_from;
  using OnOneMachine::state;
  using OnOneMachine::tape;
  using OnOneMachine::threads;

  /// All ranks must construct it together. `ranks` must outlive it. Throws std::runtime_error on every rank
  /// if one of them fails the SelfTest, or differs from rank 0 in model, optimizer, batch or arithmetic.
  explicit DistributedTrainer(Ranks& ranks, const DistributedOptions& options = {})
      : OnOneMachine({.threads = options.threads,
                      .gradient_bytes = (std::min)(options.gradient_bytes, most_gradients(ranks.size()))}),
        ranks_(ranks),
        compare_every_(options.compare_every),
        chunk_bytes_(((std::max<std::size_t>)(options.chunk_bytes, 1) + kLine - 1) / kLine * kLine) {
    struct Program {
      std::uint32_t model, arithmetic, precision, loss, sequences, chunk;
      Status self_test;
    };
    const Program mine{State::kFingerprint,
                       State::kArithmetic,
                       static_cast<std::uint32_t>(State::kPrecision),
                       kFingerprintOf<Loss>,
                       static_cast<std::uint32_t>(batch),
                       static_cast<std::uint32_t>(chunk_bytes_),
                       std::make_unique<TestOfPlan>()->run()};
    const auto all = of_all_ranks(ranks_, mine);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const Program &one = all[rank], &first = all[0];
      if (one.arithmetic != first.arithmetic) refuse(rank, "computes in a different arithmetic than rank 0");
      if (one.precision != first.precision) refuse(rank, "multiplies in a different precision than rank 0");
      if (one.self_test != Status::kOk) refuse(rank, message(one.self_test));
      if (one.model != first.model) refuse(rank, "has a different model or optimizer than rank 0");
      if (one.loss != first.loss) refuse(rank, "has a different loss than rank 0");
      if (one.sequences != first.sequences) refuse(rank, "has a different batch than rank 0");
      if (one.chunk != first.chunk) refuse(rank, "has different chunks than rank 0");
    }
  }

  /// As Trainer::step, with the same result on every rank. Throws std::runtime_error on every rank if ranks
  /// have different parameters or moments. It compares hashes at the first step, at the first step after a
  /// resume, and every `compare_every` steps.
  template <class Clipping = NoClipping, class Masks = NoMask>
  Result step(BatchInputView inputs, BatchTargetView targets, const Options& options = {},
              const Clipping& clipping = {}, const Masks& masks = {},
              const Loss& loss = attune::detail::default_loss<Loss, Masks>()) {
    if constexpr (attune::detail::check_clipping<Clipping>() &&
                  attune::detail::check_masks<Model, Masks, batch>()) {
      compare();
      auto part = this->part();
      const Result result = this->step_over(part, inputs, targets, options, clipping, masks, loss);
      if (result.ok()) ++next_;
      return result;
    }
  }

  /// A number in place of options is a compile error.
  Result step(BatchInputView, BatchTargetView, attune::detail::PlainNumber auto number, const auto&...) {
    return attune::detail::number_for_options<Scalar>(number);
  }

  /// The first sequence that this rank reads.
  [[nodiscard]] int first_sequence() { return part().first(); }
  /// The end of the sequences that this rank reads.
  [[nodiscard]] int end_sequence() { return part().end(); }
  /// The ranks that train together.
  [[nodiscard]] Ranks& ranks() { return ranks_; }

  /// Saves a run for run_training: rank 0 writes the file, and all ranks get its status.
  Status save_run(const std::string& path, std::uint32_t fingerprint,
                  std::initializer_list<std::span<const std::byte>> parts) {
    Status status = Status::kOk;
    if (ranks_.rank() == 0) status = save_whole_file(path, fingerprint, parts);
    hand_out(ranks_, std::as_writable_bytes(std::span(&status, 1)));
    return status;
  }
  /// Reads such a run on rank 0, and sends it to the others.
  Status load_run(const std::string& path, std::uint32_t fingerprint, std::vector<std::byte>& bytes) {
    struct {
      std::uint64_t size;
      Status status;
    } file{};
    if (ranks_.rank() == 0) {
      file.status = load_whole_file(path, fingerprint, bytes);
      file.size = bytes.size();
    }
    hand_out(ranks_, std::as_writable_bytes(std::span(&file, 1)));
    bytes.resize(static_cast<std::size_t>(file.size));
    hand_out(ranks_, bytes);
    return file.status;
  }

 private:
  static constexpr std::size_t kLine = 64;  // of the cache: scalars and parts begin on lines

  // Bytes of gradients for all sequences that a rank can have.
  static constexpr std::size_t most_gradients(int ranks) {
    return sizeof(Gradients) * static_cast<std::size_t>((batch + ranks - 1) / ranks);
  }

  auto part() {
    return detail::PartOfRing<Gradients, typename OnOneMachine::Sums>(ranks_, batch, chunk_bytes_,
                                                                      this->sum_here(), this->spare());
  }

  void compare() {
    const std::uint64_t steps = state().steps;
    const bool due = compare_every_ > 0 && steps % static_cast<std::uint64_t>(compare_every_) == 0;
    if (steps == next_ && !due) return;
    next_ = steps;
    struct Training {
      std::uint64_t steps;
      std::uint32_t hash, numbers;
    };
    const auto all =
        of_all_ranks(ranks_, Training{steps, hash_bits(state()), state().fingerprint_of_numbers});
    const std::string after = " than rank 0 after step " + std::to_string(all[0].steps);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].steps != all[0].steps) refuse(rank, "is at a different step" + after);
      if (all[rank].numbers != all[0].numbers) refuse(rank, "trains with different constants than rank 0");
      if (all[rank].hash != all[0].hash) refuse(rank, "has different parameters or moments" + after);
    }
  }

  [[noreturn]] static void refuse(std::size_t rank, const std::string& why) {
    throw std::runtime_error("attune::DistributedTrainer: rank " + std::to_string(rank) + ": " + why);
  }

  Ranks& ranks_;
  const int compare_every_;
  const std::size_t chunk_bytes_;
  std::uint64_t next_ = ~std::uint64_t{0};  // the step that all ranks are known to have reached
};

/// @cond
// The same for const types.
template <attune::detail::CheckedLayer Model, class Loss, class Optimizer, int batch, class Plan>
  requires attune::detail::SomeConst<Model, Loss, Optimizer, Plan>
class DistributedTrainer<Model, Loss, Optimizer, batch, Plan>
    : public DistributedTrainer<std::remove_const_t<Model>, std::remove_const_t<Loss>,
                                std::remove_const_t<Optimizer>, batch, std::remove_const_t<Plan>> {
  using Base = DistributedTrainer<std::remove_const_t<Model>, std::remove_const_t<Loss>,
                                  std::remove_const_t<Optimizer>, batch, std::remove_const_t<Plan>>;

 public:
  using Base::Base;
};
/// @endcond

}  // namespace ATTUNE_NAMESPACE::host
