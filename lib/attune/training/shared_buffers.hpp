// The memory of a training that is dead between two calls: tape, scratch and output. Trainers can share it.
//
//   static attune::SharedBuffers<Classifier, Detector> buffers;      // as large as the larger one
//   static attune::Trainer<Classifier, attune::CrossEntropy<>, attune::AdamW, 1,
//                          attune::InSharedBuffers<buffers>> classifier;
//   static attune::Trainer<Detector, …, attune::InSharedBuffers<buffers>> detector;
//   attune::infer<Keyword>(kKeyword, x, y, buffers.scratch<Keyword>());  // an inference between two calls
//
// Users take turns. A turn is one call of a trainer, or a whole pass in slices; the others
// return kUnderWay in the meantime. SharedBuffers and Trainer are separate objects, so each can be in its own
// bank of RAM: [[gnu::section(".ccmram")]] static attune::SharedBuffers<…> buffers;
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/plan.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Scratch for training or prediction, one at a time.
template <class Model, class Gradients = typename Model::Parameters,
          bool kDrops = DropsIn<typename Model::Tape>>
struct EitherScratch {
  [[no_unique_address]] ScratchOf<Model, Gradients> training;

  template <class Parameters, class X, class Y>
  ATTUNE_INLINE Status predict(const auto& context, const Parameters& parameters, X x, Y y,
                               TapeOf<Model, Gradients>& tape) {
    return forward_pass<Model>(context, parameters, x, y, tape, training);
  }
};
// With dropout, prediction runs without a tape.
template <class Model, class Gradients>
struct EitherScratch<Model, Gradients, true> {
  union {
    ScratchOf<Model, Gradients> training;
    typename Model::InferenceScratch inference;
  };

  template <class Parameters, class X, class Y>
  ATTUNE_INLINE Status predict(const auto& context, const Parameters& parameters, X x, Y y,
                               TapeOf<Model, Gradients>&) {
    return forward_pass<Model>(context, parameters, x, y, inference);
  }
};

/// Whether a pass in slices is under way, and its number.
class PassLock {
 public:
  [[nodiscard]] bool under_way() const { return pass_ % 2 != 0; }
  [[nodiscard]] bool under_way(std::uint32_t pass) const { return pass_ == pass && under_way(); }
  std::uint32_t begin_pass(const void*) { return ++pass_; }
  void end_pass(const void*) { pass_ += pass_ % 2; }

 private:
  std::uint32_t pass_;  // odd during a pass, and different for each
};
/// A turn with its owner, for trainers that share memory.
class SharedPassLock : public PassLock {
 public:
  std::uint32_t begin_pass(const void* trainer) {
    trainer_ = trainer;
    return PassLock::begin_pass(trainer);
  }
  /// Ends the pass of this trainer only.
  void end_pass(const void* trainer) {
    if (trainer_ == trainer) PassLock::end_pass(trainer);
  }

 private:
  const void* trainer_;
};

// Tape, scratch and output for training a model.
template <class Model, class Gradients>
struct TrainerBuffers {
  using Tape = TapeOf<Model, Gradients>;
  using Scratch = EitherScratch<Model, Gradients>;
  [[no_unique_address]] Tape tape;
  [[no_unique_address]] Scratch scratch;
  typename Model::Output output;  // y, then dL/dy
};

// A trainer's own memory, or a reference to a SharedBuffers.
template <class Plan, class Model>
class TrainerBuffersOf {
  using Memory = TrainerBuffers<Model, typename Plan::template GradientSet<Model>>;

 public:
  static constexpr std::size_t kTapeBytes = kBytes<typename Memory::Tape> + sizeof(typename Model::Output);
  static constexpr std::size_t kScratchBytes = kBytes<typename Memory::Scratch>;

  auto& memory() { return memory_; }
  [[nodiscard]] const auto& memory() const { return memory_; }
  auto& lock() { return lock_; }
  [[nodiscard]] const auto& lock() const { return lock_; }

 private:
  PassLock lock_;
  Memory memory_;
};
template <class Plan, class Model>
  requires requires { Plan::buffers(); }
class TrainerBuffersOf<Plan, Model> {
 public:
  static constexpr std::size_t kTapeBytes = 0, kScratchBytes = 0;

  static auto& memory() {
    return Plan::buffers().template memory<Model, typename Plan::template GradientSet<Model>>();
  }
  static auto& lock() { return Plan::buffers().pass_lock_; }
};

}  // namespace detail

/// Memory for training and inference with each of `Models`, one at a time: the size of the largest. It knows
/// the trainer of a pass by its address, so it has no copies.
template <detail::CheckedLayer... Models>
class SharedBuffers : detail::NotCopied {
 public:
  /// Scratch for inference with a model; dead between two calls. Do not use it while a pass is under way.
  template <class Model>
  typename Model::InferenceScratch& scratch() {
    return as<Model, typename Model::InferenceScratch>();
  }
  /// Whether a trainer is in the middle of a pass.
  [[nodiscard]] bool under_way() const { return pass_lock_.under_way(); }

 private:
  template <class Plan, class Model>
  friend class detail::TrainerBuffersOf;

  template <class Model>
  using MemoryOf = detail::TrainerBuffers<Model, typename Model::Parameters>;

  template <class Model, class Gradients>
  auto& memory() {
    return as<Model, detail::TrainerBuffers<Model, Gradients>>();
  }
  template <class Model, class T>
  T& as() {
    constexpr bool kKnown = (std::is_same_v<Model, Models> || ...);
    static_assert(
        detail::Holds<kKnown>,
        "attune::SharedBuffers: this SharedBuffers does not list the model; add it to SharedBuffers<…>");
    static_assert(
        detail::Holds<(!kKnown || sizeof(T) <= sizeof bytes_)>,
        "attune::SharedBuffers: updates in backward need one more matrix of tokens than the largest "
        "model; use the plan UpdateInBackward, without the buffers");
    return *std::launder(reinterpret_cast<T*>(bytes_));
  }

  alignas(detail::largest({alignof(MemoryOf<Models>)...,
                           alignof(typename Models::InferenceScratch)...})) unsigned char bytes_
      [detail::largest({sizeof(MemoryOf<Models>)..., sizeof(typename Models::InferenceScratch)...})];
  detail::SharedPassLock pass_lock_;
};

/// A plan with its tape, scratch and output in a SharedBuffers, which lives as long as the program. tape()
/// after a prediction is valid until the next user's turn.
template <auto& shared, class Plan = BySequence>
struct InSharedBuffers : Plan {
  /// The plan for an optimizer.
  template <class Optimizer>
  using With = InSharedBuffers<shared, detail::PlanWith<Plan, Optimizer>>;
  /// The shared buffers.
  static auto& buffers() { return shared; }
};

}  // namespace ATTUNE_NAMESPACE
