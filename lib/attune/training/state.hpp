// The state of a training, as a value: parameters, moments, counters, and the position of dropout's masks. A
// training that resumes from it is bit-identical to one that never stopped.
//
//   const auto& state = trainer.state();       // between two steps; write it as it is, sizeof state bytes
//   attune::Status status = trainer.resume(state);
//
// Every memory plan and batch size of Trainer has the same state, and so has ParallelTrainer: a state moves
// from a PC to a board and back. It is plain memory without pointers, little-endian on every target.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/memory.hpp>
#include <attune/core/rng.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/checked.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The position of dropout's masks: the generator of their starts, and the sequences since then.
struct MaskState {
  std::uint64_t generator;
  std::uint64_t sequences;

  /// Masks start from `rng`.
  void begin(const Rng& rng) { *this = {std::bit_cast<std::uint64_t>(rng), 0}; }
  void count(int passed) { sequences += static_cast<std::uint64_t>(passed); }
  /// Moves a tape to the masks of a sequence of the next batch.
  void apply_to(auto& tape, int sequence) const {
    Rng rng = std::bit_cast<Rng>(generator);
    draw_seeds(tape, rng);
    skip_masks(tape, static_cast<std::int64_t>(sequences) + sequence);
  }
};
/// The same for a model without dropout.
struct NoMaskState {
  static void begin(const Rng&) {}
  static void count(int) {}
  static void apply_to(const auto& /*tape*/, int) {}
};

/// The hash of all bits of a model's constants; 0 without constants. In the other precision, the hash of the
/// same integers: converted to floats if they are packed, and packed if they are not.
template <class Model>
constexpr std::uint32_t base_of(HashedPrecision = HashedPrecision::kOwn) {
  return 0;
}
template <class Model>
  requires kHasConstants<Model> std::uint32_t base_of(HashedPrecision precision = HashedPrecision::kOwn) {
    return hash_constants<Model>(precision);
  }
/// Whether `numbers` is the fingerprint of an arithmetic. Without constants it can be nothing else.
template <class Model>
constexpr bool is_arithmetic(std::uint32_t numbers) {
  constexpr std::uint32_t kAll[] = {fingerprint("unfused"),      fingerprint("fused"),
                                    fingerprint("unfused_blas"), fingerprint("fused_blas"),
                                    fingerprint("unfused_mve"),  fingerprint("fused_mve"),
                                    fingerprint("unfused_neon"), fingerprint("fused_neon")};
  return !kHasConstants<Model> || any_of(kAll, [numbers](std::uint32_t one) { return one == numbers; });
}

}  // namespace detail

/// The arithmetic of a training's products, chosen by the plan.
enum class TrainingPrecision {
  kScalar = 0,  // the model's scalars, and packed integers for packed constants
  kInt8 = 1,    // 8-bit integers (int8_training.hpp)
};

/// The state of a training of `Model` with `Optimizer`. resume() refuses a zero-initialized one. All members
/// are public: a store fills the bytes. If check() refuses a state, its parameters can still be loaded.
template <class Model, class Optimizer, TrainingPrecision precision = TrainingPrecision::kScalar>
struct TrainingState {
  using Gradients = typename Model::Parameters;
  using Parameters = detail::MastersOf<Model, Optimizer>;
  using Moments = typename Optimizer::template Moments<Gradients>;
  /// Whether the model has dropout.
  static constexpr bool kDrops = detail::DropsIn<typename Model::Tape>;

  /// The fingerprint of model and optimizer: their types, shapes, names and options.
  static constexpr std::uint32_t kFingerprint = fingerprint(
      sizeof(typename Model::Scalar), sizeof(typename Model::Input), sizeof(typename Model::Output),
      kFingerprintOf<Model>, kFingerprintOf<Optimizer>, detail::fingerprint_of_tensors<Model>());
  /// Replaces kFingerprint while an update is under way.
  static constexpr std::uint32_t kPartOfUpdate = ~kFingerprint;
  /// The fingerprint of this program's arithmetic (kernels/policy.hpp). Trainings in the same arithmetic have
  /// the same bits.
  static constexpr std::uint32_t kArithmetic = fingerprint(kArithmeticName);
  /// The precision of the plan. States of both precisions have the same layout, so a store reads either.
  static constexpr TrainingPrecision kPrecision = precision;

  Parameters parameters;
  [[no_unique_address]] Moments moments;  // of the optimizer
  std::uint64_t steps;                    // of the optimizer
  /// The position of dropout's masks.
  [[no_unique_address]] std::conditional_t<kDrops, detail::MaskState, detail::NoMaskState> masks;
  std::uint32_t fingerprint_of_type;     // kFingerprint of the program that wrote it
  std::uint32_t fingerprint_of_numbers;  // numbers() of that program

  /// The fingerprint of this program's arithmetic, the plan's precision, and all bits of the model's
  /// constants, if it has any. Reading the constants takes about 15 instructions per float.
  [[nodiscard]] static constexpr std::uint32_t numbers() {
    return detail::base_of<Model>() + kArithmetic + of_precision(kPrecision);
  }

  /// Whether a trainer of this program can resume from it. After kOtherState, kOtherArithmetic or
  /// kOtherPrecision, load(parameters) is the alternative. kOtherBase: the model's constants are not the ones
  /// that it was trained with. kOtherPrecision: only one of the two plans multiplies integers, or only one of
  /// the two bases is packed. kUnderWay: saved between the slices of an update, which is partly applied.
  constexpr Status check() const {
    if (const Status status = check_saved(); status != Status::kOk) return status;
    constexpr TrainingPrecision kOther =
        kPrecision == TrainingPrecision::kInt8 ? TrainingPrecision::kScalar : TrainingPrecision::kInt8;
    const std::uint32_t numbers = fingerprint_of_numbers - detail::base_of<Model>();
    const std::uint32_t arithmetic = numbers - of_precision(kPrecision);
    if (arithmetic == kArithmetic) return Status::kOk;
    if (numbers - of_precision(kOther) == kArithmetic || is_of_other_base_precision()) {
      return Status::kOtherPrecision;
    }
    return detail::is_arithmetic<Model>(arithmetic) ? Status::kOtherArithmetic : Status::kOtherBase;
  }

  /// Whether a store may save it: check() without a look at the arithmetic and the model's constants, which a
  /// trainer has checked when it took the state over. A few instructions.
  constexpr Status check_saved() const {
    if (!std::is_constant_evaluated()) ATTUNE_ASSERT_ROUNDING();
    if (fingerprint_of_type == kPartOfUpdate) return Status::kUnderWay;
    return fingerprint_of_type == kFingerprint ? Status::kOk : Status::kOtherState;
  }

  /// Whether a trainer that holds it can train. kNotInitialized before the first initialization, and after a
  /// refused state was read into it.
  constexpr Status ready() const {
    return fingerprint_of_type == kFingerprint ? Status::kOk : Status::kNotInitialized;
  }

  /// check() for a state that was read into a trainer. Marks a refused state as not initialized.
  constexpr Status claim() {
    const Status status = check();
    if (status != Status::kOk && fingerprint_of_type == kFingerprint) fingerprint_of_type = 0;
    return status;
  }

  /// Its tensors by name: "parameters.…", and the optimizer's as "moments.first.…", unless they are in 16
  /// bits.
  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
    const TensorPath of_parameters{"parameters", parent}, of_moments{"moments", parent};
    Parameters::visit(visitor, &of_parameters, sets.parameters...);
    if constexpr (requires { Moments::visit(visitor, &of_moments, sets.moments...); }) {
      Moments::visit(visitor, &of_moments, sets.moments...);
    }
  }

 private:
  static constexpr std::uint32_t of_precision(TrainingPrecision of) {
    return of == TrainingPrecision::kInt8 ? fingerprint("int8 products") : 0;
  }
  // Whether the constants are the same integers in the other form.
  [[nodiscard]] constexpr bool is_of_other_base_precision() const {
    return detail::kHasConstants<Model> &&
           fingerprint_of_numbers - detail::base_of<Model>(detail::HashedPrecision::kOther) ==
               kArithmetic + of_precision(kPrecision);
  }
};

namespace detail {

/// The precision of a plan: the model's scalars, unless the plan names another.
template <class Plan>
inline constexpr TrainingPrecision kPrecisionOf = TrainingPrecision::kScalar;
template <class Plan>
  requires requires { Plan::kPrecision; }
inline constexpr TrainingPrecision kPrecisionOf<Plan> = Plan::kPrecision;

// Functions that trainers call on their state.

/// Zeros the padding bytes, so that equal trainings have equal bytes.
ATTUNE_INLINE void clear_padding(auto& state) {
  for_each_tensor(
      []<class Leaf>(const TensorPath&, Leaf& tensor) {
        constexpr std::size_t kUsed = sizeof *std::declval<Leaf&>().data() * std::size_t{Leaf::size};
        // Behind an odd number of 16 bits.
        std::memset(reinterpret_cast<unsigned char*>(&tensor) + kUsed, 0, sizeof(Leaf) - kUsed);
      },
      state.parameters);
  auto* const bytes = reinterpret_cast<unsigned char*>(&state);
  std::size_t end = 0;  // of the members so far
  const auto clear_up_to = [&]<class Member>(const Member& member) ATTUNE_INLINE_LAMBDA {
    if (std::is_empty_v<Member>) return;
    const auto begin = static_cast<std::size_t>(reinterpret_cast<const unsigned char*>(&member) - bytes);
    std::memset(bytes + end, 0, begin - end);
    end = begin + sizeof member;
  };
  clear_up_to(state.parameters);
  clear_up_to(state.moments);
  clear_up_to(state.steps);
  clear_up_to(state.masks);
  clear_up_to(state.fingerprint_of_type);
  clear_up_to(state.fingerprint_of_numbers);
  std::memset(bytes + end, 0, sizeof state - end);
}

/// Forgets all training except the parameters. Stochastic rounding and dropout's masks start from `rng`;
/// tapes then draw from it (dropout.hpp).
template <class State>
void restart(State& state, const Rng& rng) {
  state.moments.reset();
  if constexpr (requires { state.moments.seed(std::uint64_t{}); }) {
    state.moments.seed(std::bit_cast<std::uint64_t>(rng));
  }
  state.steps = 0;
  state.masks.begin(rng);
  state.fingerprint_of_type = State::kFingerprint;
  state.fingerprint_of_numbers = State::numbers();
  clear_padding(state);
}
/// After an optimizer step over `sequences` sequences.
inline void count_step(auto& state, int sequences) {
  ++state.steps;
  state.masks.count(sequences);
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
