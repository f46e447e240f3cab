// Trainers that learn from takes without labels, or with a few: by gradients (entropy.hpp), or a head in
// closed form (unlabeled_head.hpp). Both learn from all takes at once, which they ask for one by one, several
// times.
//
//   static attune::InfoMaxTrainer<Tuned, attune::AdamW, 50> trainer;   // Tuned: factors of low rank, say
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
//   const auto takes = [&](int i, const auto& learn) {
//     load(i, x);
//     return learn(x, attune::kUnlabeled);   // or its class; a mask may follow
//   };
//   for (int step = 0; step < 40; ++step) result = trainer.learn(50, takes, {.learning_rate = 3e-3f});
//
//   static attune::UnlabeledHeadTrainer<attune::LinearProbe<Model, kBase>,
//                                       attune::LinearProbeFeatures<Model, kBase>, 50> head;
//   head.initialize(attune::XavierUniform{}, attune::Rng{1});          // kBase's head
//   const auto learned = head.learn(50, takes);                        // the guard may object
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/pass.hpp>
#include <attune/training/closed_form_trainer.hpp>
#include <attune/training/entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/unlabeled_head.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Stands for the optimizer in the state of a head without labels.
template <class ScalarType>
struct BalancedLabels {
  using Scalar = ScalarType;
  static constexpr std::uint32_t kFingerprint = fingerprint("BalancedLabels");
  template <class>
  struct Moments {
    void reset() {}
  };
};

template <class Model, bool keeps_gradients>
constexpr bool check_info_max() {
  static_assert(Holds<keeps_gradients>,
                "attune::InfoMaxTrainer: a step adds up gradients, which UpdateInBackward does not keep; use "
                "BySequence");
  static_assert(Holds<(Model::Output::rows == 1)>,
                "attune::InfoMaxTrainer: the model must end with one row of logits; a Pooling makes one row "
                "of all tokens");
  return keeps_gradients && Model::Output::rows == 1;
}

// One error for all passes over the takes.
template <bool answers>
constexpr bool check_takes() {
  static_assert(
      Holds<answers>,
      "attune: takes(int i, const auto& learn) returns the Status of learn(x, label), or of learn(x, "
      "label, mask)");
  return answers;
}
/// Asks for a take. An error of takes(i, learn), or of the learn that it must call once.
inline Status ask_for_take(int i, const auto& takes, const auto& learn) {
  int calls = 0;
  Status learned = Status::kIncompleteBatch;
  const auto once = [&](const auto& x, int label, const auto&... mask) {
    learned = ++calls == 1 ? learn(x, label, mask...) : Status::kIncompleteBatch;
    return learned;
  };
  constexpr bool kAnswers = std::is_invocable_r_v<Status, decltype(takes), int, decltype(once)>;
  if constexpr (check_takes<kAnswers>()) {
    const Status status = takes(i, once);
    return status == Status::kOk ? learned : status;
  } else {
    return Status::kIncompleteBatch;
  }
}

}  // namespace detail

/// A Trainer that minimizes SemiSupervised: InfoMax of takes without labels, cross-entropy of the others. The
/// model ends with logits[1, classes]. A step takes at most `max_takes`.
template <detail::CheckedLayer Model, class Optimizer, int max_takes, class Plan = BySequence>
class InfoMaxTrainer : public Trainer<Model, SemiSupervised, Optimizer, max_takes, Plan> {
  using Base = Trainer<Model, SemiSupervised, Optimizer, max_takes, Plan>;
  using Output = typename Model::Output;
  static constexpr bool kLearns = detail::check_info_max < Model, requires(Base&trainer) {
    trainer.gradients();
  }
  > ();

 public:
  using Options = typename Base::Options;
  using Result = typename Base::Result;

  /// One step on `count` takes: a pass for the mean probabilities of those without labels, and one for the
  /// gradients of all. In each pass, takes(i, learn) is called in order. It returns learn(x, label), or
  /// learn(x, label, mask), where `label` is a class or kUnlabeled; or an error. Discards accumulated
  /// sequences. On an error nothing changes: kInvalidLength for `count`, kIncompleteBatch for a take that
  /// did not call learn once, kInvalidTarget for a label, any of accumulate() and update().
  template <class Takes>
  Result learn(int count, const Takes& takes, const Options& options = {}) {
    if constexpr (kLearns) {
      if (count <= 0 || count > max_takes) return Result::refused(Status::kInvalidLength);
      this->discard();
      ClassMarginal<Output::cols, typename Base::Scalar> marginal{};
      Output logits{};
      Status status = in_order(count, takes, [&](const auto& x, int label, const auto&... mask) {
        if (label < kUnlabeled || label >= Output::cols) return Status::kInvalidTarget;
        if (label != kUnlabeled) return Status::kOk;
        const Status predicted = this->predict(x, logits, mask...);
        return predicted == Status::kOk ? marginal.add(logits) : predicted;
      });
      if (status == Status::kOk && marginal.count() > 0) status = marginal.logarithms(logits);
      if (status == Status::kOk) {
        status = in_order(count, takes, [&](const auto& x, int label, const auto&... mask) {
          if (label == kUnlabeled) return this->accumulate(x, logits, mask...).status;
          Output labeled{};
          labeled(0, label) = 1;
          return this->accumulate(x, labeled, mask...).status;
        });
      }
      if (status == Status::kOk) return this->update_incomplete(options);
      this->discard();
      return Result::refused(status);
    }
  }
  /// A number in place of options is a compile error.
  Result learn(int, const auto&, detail::PlainNumber auto number) {
    return detail::number_for_options<typename Base::Scalar>(number);
  }

 private:
  static Status in_order(int count, const auto& takes, const auto& learn) {
    Status status = Status::kOk;
    for (int i = 0; i < count && status == Status::kOk; ++i) {
      status = detail::ask_for_take(i, takes, learn);
    }
    return status;
  }
};

/// Learns the last layer of `Trained`, a LinearProbe, by an UnlabeledHead, from at most `max_takes` takes.
/// `FeatureLayers` are the LinearProbeFeatures of the same model and constants. Features are not stored: a
/// take costs a forward pass in each of 1 + 2·rounds passes. The state is the head.
template <detail::CheckedLayer Trained, detail::CheckedLayer FeatureLayers, int max_takes>
  requires detail::SolvesHead<Trained, FeatureLayers>
class UnlabeledHeadTrainer
    : public TrainingLifecycle<UnlabeledHeadTrainer<Trained, FeatureLayers, max_takes>,
                               TrainingState<Trained, detail::BalancedLabels<typename Trained::Scalar>>> {
  static constexpr int kHead = Trained::kLayers - 1;
  using HeadLayer = typename Trained::template Layer<kHead>;
  using Learning =
      UnlabeledHead<HeadLayer::Input::cols, HeadLayer::Output::cols, max_takes, typename Trained::Scalar>;

 public:
  using Scalar = typename Trained::Scalar;                               // the type of its numbers
  using Parameters = typename Trained::Parameters;                       // the head
  using State = TrainingState<Trained, detail::BalancedLabels<Scalar>>;  // the head
  using InputView = ConstView<typename Trained::Input>;                  // one sequence
  using OutputView = View<typename Trained::Output>;                     // logits
  using Options = typename Learning::Options;                            // prior, solver, guard, rounds
  using Result = UnlabeledResult<Scalar>;

  /// Learns from `count` takes, from the constants' head on. takes(i, learn) is called for all takes in
  /// order, in 1 + 2·rounds passes. It returns learn(x, label), or learn(x, label, mask), where `label` is a
  /// class or kUnlabeled; or an error. If the guard objects, or on an error of UnlabeledHead::learn(), the
  /// head becomes the constants', also on kIncompleteBatch for a take that did not call learn once. Returns
  /// kNotInitialized, or kInvalidLength for `count`, with nothing changed.
  Result learn(int count, const auto& takes, const Options& options = {}) {
    return learn_by(count, takes, [&](const auto& base, const auto& features, auto& head, auto known) {
      return learning_.learn(base, count, features, head, known, options);
    });
  }
  /// The same, and remembers the outputs on the examples of `factory`, filled on the PC. `probe` evaluates
  /// a head, as for UnlabeledHead::learn().
  template <class Takes, int factory_classes, class Probe>
  Result learn(int count, const Takes& takes, const Options& options,
               const ClosedFormHead<HeadLayer::Input::cols, factory_classes, Scalar>& factory,
               const Probe& probe) {
    return learn_by(count, takes, [&](const auto& base, const auto& features, auto& head, auto known) {
      return learning_.learn(base, factory, count, features, probe, head, known, options);
    });
  }

  /// y[rows, cols] for x with the head so far. Returns a Status as Trainer::predict. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Status predict(InputView x, OutputView y, const Mask& mask = {}) {
    return detail::predict_without_tape<Trained>(state_, x, y, mask, scratch_.inference);
  }

  /// RAM of training. object() is sizeof(UnlabeledHeadTrainer); `inputs` is one take and its label.
  [[nodiscard]] static constexpr MemoryReport memory() {
    return detail::report_of(sizeof(UnlabeledHeadTrainer),
                             {.parameters = sizeof(Parameters),
                              .scratch = sizeof scratch_ + sizeof learning_ + sizeof known_,
                              .inputs = sizeof(typename Trained::Input) + sizeof(std::array<int, 1>)});
  }

 private:
  friend TrainingLifecycle<UnlabeledHeadTrainer, State>;

  // learn(base, features, head, known) learns.
  Result learn_by(int count, const auto& takes, const auto& learn) {
    if (const Status status = state_.ready(); status != Status::kOk) return {status};
    if (count <= 0 || count > max_takes) return {Status::kInvalidLength};
    const auto features = [&](int i, typename Learning::Features& to) {
      const auto learn_from = [&]<class Mask = NoMask>(InputView x, int label, const Mask& mask = {}) {
        known_[i] = label;
        return detail::features_of<FeatureLayers>(x, to, mask, scratch_.features);
      };
      return detail::ask_for_take(i, takes, learn_from);
    };
    const Result result = learn(HeadLayer::constants(), features, state_.parameters.template layer<kHead>(),
                                std::span<const int>(known_, static_cast<std::size_t>(count)));
    if (result.ok()) detail::count_step(state_, 0);
    return result;
  }

  union Scratch {
    typename FeatureLayers::InferenceScratch features;
    typename Trained::InferenceScratch inference;
  };

  State state_{};
  Scratch scratch_{};
  Learning learning_{};
  int known_[static_cast<std::size_t>(max_takes)]{};
};

}  // namespace ATTUNE_NAMESPACE
