// The device's classifier, by method: how it starts, learns from the takes of a new speaker, and answers.
//
//   learner.start();                       as the base
//   learner.begin(recordings);             what is done once
//   learner.step(recordings, step);        Status
//   learner.classify(example, logits);
//   learner.parameters();                  what was learned; learner.restore(read) starts from that
//
// One that trains a part of the model takes a journal as well: learner.step(recordings, step, journal).
#pragma once

#include "methods.hpp"

namespace personalise {

using attune::Status;

inline constexpr int kSteps = 100;
using Loss = attune::CrossEntropy<>;

/// The take of a digit that comes in a step: over kTakesOfDigit steps, all of them.
inline int take_of(int step, int digit) { return digit * kTakesOfDigit + (step + digit) % kTakesOfDigit; }

template <Method method>
constexpr typename Optimizer<method>::Options options() {
  return {.learning_rate = learning_rate(method), .weight_decay = 0};
}

/// In the place of an attune::TrainingJournal: writes nothing.
template <class Trainer>
struct NoJournal {
  Trainer& trainer;
  auto accumulate(std::uint32_t, const auto&... arguments) { return trainer.accumulate(arguments...); }
  auto update(const auto& options) { return trainer.update(options); }
};

/// Trains a part of the model, a recording of each digit a step.
template <Method method, const auto& kBase, const auto& kFront>
class Learner {
 public:
  using Model = typename Trained<method, kFront>::Model;
  using Trainer = attune::Trainer<Model, Loss, Optimizer<method>, kDigits + rehearsed(method)>;
  static constexpr attune::MemoryReport memory() { return Trainer::memory(attune::Feeding::kOneByOne); }
  static constexpr int kTrainedParameters = sizeof(typename Model::Parameters) / sizeof(float);
  static constexpr int kSteps = personalise::kSteps;

  void start() { start(trainer_); }
  static void start(Trainer& trainer) {
    static_cast<void>(trainer.load([](typename Model::Parameters& parameters) {
      if constexpr (std::is_same_v<Model, Whole>) {
        attune::copy_parameters(kBase, parameters);
      } else {
        attune::Rng rng(1);
        attune::initialize(parameters, attune::XavierUniform{}, rng);
        attune::copy_parameters(kBase.template layer<1>(), parameters.template layer<1>());
      }
      return Status::kOk;
    }));
  }
  void begin(const Recordings&) {}
  Status step(const Recordings& recordings, int step) {
    NoJournal<Trainer> none{trainer_};
    return this->step(recordings, step, none);
  }
  template <class Journal>
  Status step(const Recordings& recordings, int step, Journal& journal) {
    const auto add = [&](const Recording& recording) {
      load(recording, example_);
      const auto number = static_cast<std::uint32_t>(&recording - recordings.all.data());
      return journal.accumulate(number, example_.tokens, example_.digit, example_.padding).status;
    };
    const auto takes = recordings.of(Use::kTakes);
    for (int digit = 0; digit < kDigits; ++digit) {
      const Status status = add(takes[static_cast<std::size_t>(take_of(step, digit))]);
      if (status != Status::kOk) return status;
    }
    if constexpr (rehearsed(method) > 0) {
      const auto others = recordings.of(Use::kOthersTakes);
      attune::Rng order{1};
      order.skip(static_cast<std::uint64_t>(step) * rehearsed(method));
      for (int i = 0; i < rehearsed(method); ++i) {
        const Status status = add(others[order.next() % others.size()]);
        if (status != Status::kOk) return status;
      }
    }
    return journal.update(options<method>()).status;
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
  Trainer trainer_{};
  Example example_{};
};

/// The base as it is.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kNothing, kBase, kFront> {
 public:
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = attune::inference_memory<Whole>();
    memory.parameters = 0;  // which are in flash
    return memory;
  }
  static constexpr int kTrainedParameters = 0;
  static constexpr int kSteps = 0;

  void start() {}
  void begin(const Recordings&) {}
  Status step(const Recordings&, int) { return Status::kOk; }
  Status classify(const Example& example, Logits& logits) {
    attune::infer<Whole>(kBase, example.tokens, logits, scratch_, example.padding);
    return Status::kOk;
  }
  [[nodiscard]] attune::NoParameters parameters() const { return {}; }
  template <class Read>
  Status restore(const Read&) {
    return Status::kOk;
  }

 private:
  Whole::InferenceScratch scratch_{};
};

/// Of all takes the features, once; what comes behind the front then learns from those alone.
template <const auto& kFront>
class CachedFeatures {
 public:
  void compute(const Recording& recording, Features& features) {
    load(recording, example_);
    compute(example_, features);
  }
  void compute(const Example& example, Features& features) {
    attune::infer<Front>(kFront, example.tokens, features, scratch_, example.padding);
  }

 private:
  Front::InferenceScratch scratch_{};
  Example example_{};
};

template <const auto& kBase, const auto& kFront>
class Learner<Method::kCached, kBase, kFront> {
 public:
  using Trainer = attune::Trainer<Head, Loss, attune::AdamW, kDigits>;
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = Trainer::memory(attune::Feeding::kOneByOne);
    memory.scratch += sizeof(CachedFeatures<kFront>);
    memory.inputs += sizeof(Learner::features_);
    return memory;
  }
  static constexpr int kTrainedParameters = sizeof(Head::Parameters) / sizeof(float);
  static constexpr int kSteps = personalise::kSteps;

  void start() {
    static_cast<void>(trainer_.load([](Head::Parameters& parameters) {
      attune::copy_parameters(kBase.template layer<1>(), parameters);
      return Status::kOk;
    }));
  }
  void begin(const Recordings& recordings) {
    const auto takes = recordings.of(Use::kTakes);
    for (std::size_t i = 0; i < takes.size(); ++i) front_.compute(takes[i], features_[i]);
  }
  Status step(const Recordings&, int step) {
    for (int digit = 0; digit < kDigits; ++digit) {
      const int label[] = {digit};
      const auto added = trainer_.accumulate(features_[take_of(step, digit)], label);
      if (!added.ok()) return added.status;
    }
    return trainer_.update(options<Method::kCached>()).status;
  }
  Status classify(const Example& example, Logits& logits) {
    Features features;
    front_.compute(example, features);
    return trainer_.predict(features, logits);
  }
  [[nodiscard]] const auto& parameters() const { return trainer_.parameters(); }
  template <class Read>
  Status restore(const Read& read) {
    return trainer_.load(read);
  }

 private:
  Trainer trainer_{};
  CachedFeatures<kFront> front_{};
  Features features_[kDigits * kTakesOfDigit]{};
};

/// Each digit is the mean m of its takes' features; the nearest one has the largest x·m − |m|²/2, so that it
/// is a linear layer.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kMeans, kBase, kFront> {
 public:
  static constexpr attune::MemoryReport memory() {
    return {.parameters = sizeof(Head::Parameters), .scratch = sizeof(CachedFeatures<kFront>)};
  }
  static constexpr int kTrainedParameters = sizeof(Head::Parameters) / sizeof(float);
  static constexpr int kSteps = 0;

  void start() { attune::copy_parameters(kBase.template layer<1>(), head_); }
  void begin(const Recordings& recordings) {
    const auto takes = recordings.of(Use::kTakes);
    head_ = {};
    Features features;
    for (const Recording& take : takes) {
      front_.compute(take, features);
      for (int i = 0; i < kWidth; ++i) head_.weight(i, take.digit) += features(0, i) / kTakesOfDigit;
    }
    for (int digit = 0; digit < kDigits; ++digit) {
      float squares = 0;
      for (int i = 0; i < kWidth; ++i) squares += head_.weight(i, digit) * head_.weight(i, digit);
      head_.bias(0, digit) = -squares / 2;
    }
  }
  Status step(const Recordings&, int) { return Status::kOk; }
  Status classify(const Example& example, Logits& logits) {
    Features features;
    front_.compute(example, features);
    Head::InferenceScratch scratch;
    Head::forward(head_, features, logits, scratch);
    return Status::kOk;
  }
  [[nodiscard]] const auto& parameters() const { return head_; }
  template <class Read>
  Status restore(const Read& read) {
    return read(head_);
  }

 private:
  Head::Parameters head_{};
  CachedFeatures<kFront> front_{};
};

}  // namespace personalise
