// Learners that train by gradients (learner.hpp).
#pragma once

#include "doubts.hpp"
#include "methods.hpp"
#include "replayed.hpp"

namespace personalise {

using attune::Status;

inline constexpr int kSteps = 100;
using Loss = attune::CrossEntropy<>;

template <Method method>
constexpr typename Optimizer<method>::Options options(const Recordings& recordings) {
  return {.learning_rate = learning_rate(method) * recordings.rate_times, .weight_decay = 0};
}

/// Starts a trainer of a part of the model as the base, which knows digits below `old_classes`.
template <const auto& kBase, class Trainer>
void start_as_base(Trainer& trainer, int old_classes = kDigits) {
  static_cast<void>(trainer.load([old_classes](typename Trainer::Parameters& parameters) {
    attune::Rng rng(1);
    attune::initialize(parameters, attune::XavierUniform{}, rng);
    attune::grow_head(kBase.template layer<1>(), parameters.template layer<1>(), old_classes);
    return Status::kOk;
  }));
}

/// In the place of an attune::TrainingJournal: writes nothing.
template <class Trainer>
struct NoJournal {
  Trainer& trainer;
  auto accumulate(std::uint32_t, const auto&... arguments) { return trainer.accumulate(arguments...); }
  auto update(const auto& options) {
    return trainer.update_incomplete(options);  // fewer takes may be replayed than fit
  }
  auto step(std::uint32_t, const auto&... arguments) { return trainer.step(arguments...); }
};

/// Trains a part of the model, a recording of each digit a step.
template <Method method, const auto& kBase, const auto& kFront>
class Learner {
 public:
  using Model = typename Trained<method, kFront>::Model;
  static constexpr int kBatch =
      steps_by_take(method) ? 1 : kDigits + rehearsed(method) + most_replayed(method);
  using Trainer = attune::Trainer<Model, LossOf<method>, Optimizer<method>, kBatch, Plan<method>>;
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = Trainer::memory(attune::Feeding::kOneByOne);
    if constexpr (filters(method)) memory.state += sizeof(Doubts<Trainer>);
    if constexpr (most_replayed(method) > 0) memory.state += ReplayedTakes::kRam;
    return memory;
  }
  static constexpr int kTrainedParameters = sizeof(typename Model::Parameters) / sizeof(float);
  static constexpr int kSteps = personalise::kSteps;

  void start(int old_classes = kDigits) { start(trainer_, old_classes); }
  static void start(Trainer& trainer, int old_classes = kDigits) {
    if constexpr (method == Method::kFull || method == Method::kFullLowPrecision) {
      static_cast<void>(trainer.load([](typename Trainer::Parameters& parameters) {
        attune::copy_parameters(kBase, parameters);
        return Status::kOk;
      }));
    } else {
      start_as_base<kBase>(trainer, old_classes);
    }
  }
  Status begin(const Recordings& recordings) {
    if constexpr (filters(method)) return doubts_.begin(trainer_, recordings, method == Method::kGuarded);
    if constexpr (most_replayed(method) > 0) return replayed_.begin(recordings);
    return Status::kOk;
  }
  Status step(const Recordings& recordings, int step) {
    NoJournal<Trainer> none{trainer_};
    return this->step(recordings, step, none);
  }
  template <class Journal>
  Status step(const Recordings& recordings, int step, Journal& journal) {
    if constexpr (filters(method)) {
      if (!doubts_.learns()) return Status::kOk;
    }
    const auto add = [&](const Recording& recording, const Recording& in_flash) {
      load(recording, example_);
      const auto number = static_cast<std::uint32_t>(&in_flash - recordings.all.data());
      if constexpr (steps_by_take(method)) {
        return journal
            .step(number, example_.tokens, example_.digit, options<method>(recordings), attune::NoClipping{},
                  example_.padding)
            .status;
      } else {
        return journal.accumulate(number, example_.tokens, example_.digit, example_.padding).status;
      }
    };
    const auto takes = recordings.of(Use::kTakes);
    for (int digit = 0; digit < kDigits; ++digit) {
      const int take = take_in(step, digit);
      const Status status = add(recordings.take(take), takes[static_cast<std::size_t>(take)]);
      if (status != Status::kOk) return status;
    }
    if constexpr (rehearsed(method) > 0) {
      const auto others = recordings.of(Use::kOthersTakes);
      attune::Rng order{1};
      order.skip(static_cast<std::uint64_t>(step) * rehearsed(method));
      for (int i = 0; i < rehearsed(method); ++i) {
        const Recording& take = others[order.next() % others.size()];
        const Status status = add(take, take);
        if (status != Status::kOk) return status;
      }
    }
    if constexpr (most_replayed(method) > 0) {
      attune::Rng draws{static_cast<std::uint64_t>(step)};
      for (int i = 0; i < recordings.replayed; ++i) {
        const Status status = replayed_.replay(trainer_, draws, example_);
        if (status != Status::kOk) return status;
      }
    }
    if constexpr (steps_by_take(method)) {
      return Status::kOk;
    } else {
      const Status status = journal.update(options<method>(recordings)).status;
      if constexpr (method == Method::kGuarded) return doubts_.mark(trainer_, recordings, step + 1, status);
      return status;
    }
  }
  /// After the last step.
  Status end() {
    if constexpr (method == Method::kGuarded) return doubts_.end(trainer_);
    return Status::kOk;
  }
  Status classify(const Example& example, Logits& logits) {
    return trainer_.predict(example.tokens, logits, example.padding);
  }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] const auto& parameters() const { return trainer_.parameters(); }
  template <class Read>
  Status restore(const Read& read) {
    return trainer_.load(read);
  }

 private:
  int take_in(int step, int digit) const {
    if constexpr (filters(method)) return doubts_.take_in(step, digit);
    return take_of(step, digit);
  }

  struct NoDoubts {};
  struct NoTakes {};
  Trainer trainer_{};
  Example example_{};
  [[no_unique_address]] std::conditional_t<filters(method), Doubts<Trainer>, NoDoubts> doubts_{};
  [[no_unique_address]] std::conditional_t<(most_replayed(method) > 0), ReplayedTakes, NoTakes> replayed_{};
};

/// Trains a part of the model without labels, by InfoMax, or with a few beside: a pass for the mean
/// probabilities of unlabeled takes, then one for gradients of all.
template <Method method, const auto& kBase, const auto& kFront>
  requires(maximizes_information(method))
class Learner<method, kBase, kFront> {
 public:
  using Model = typename Trained<method, kFront>::Model;
  using Trainer = attune::Trainer<Model, attune::SemiSupervised, attune::AdamW, kNumTakes, Plan<method>>;
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = Trainer::memory(attune::Feeding::kOneByOne);
    memory.state += sizeof(Learner::marginal_);
    return memory;
  }
  static constexpr int kTrainedParameters = sizeof(typename Model::Parameters) / sizeof(float);
  static constexpr int kSteps = 40;

  void start() { start_as_base<kBase>(trainer_); }
  Status begin(const Recordings&) { return Status::kOk; }
  Status step(const Recordings& recordings, int) {
    Logits logits, unlabeled;
    marginal_.clear();
    for (int i = 0; i < kNumTakes; ++i) {
      if (recordings.known_label(i) != attune::kUnlabeled) continue;
      load(recordings.take(i), example_);
      Status status = classify(example_, logits);
      if (status == Status::kOk) status = marginal_.add(logits);
      if (status != Status::kOk) return status;
    }
    if (const Status status = marginal_.logarithms(unlabeled); status != Status::kOk) return status;
    for (int i = 0; i < kNumTakes; ++i) {
      const int label = recordings.known_label(i);
      Logits labeled{};
      if (label != attune::kUnlabeled) labeled(0, label) = 1;
      load(recordings.take(i), example_);
      const auto added = trainer_.accumulate(
          example_.tokens, label == attune::kUnlabeled ? unlabeled : labeled, example_.padding);
      if (!added.ok()) return added.status;
    }
    return trainer_.update(options<method>(recordings)).status;
  }
  Status classify(const Example& example, Logits& logits) {
    return trainer_.predict(example.tokens, logits, example.padding);
  }
  [[nodiscard]] const auto& parameters() const { return trainer_.parameters(); }
  template <class Read>
  Status restore(const Read& read) {
    return trainer_.load(read);
  }

 private:
  Trainer trainer_{};
  attune::ClassMarginal<kDigits> marginal_{};
  Example example_{};
};

}  // namespace personalise
