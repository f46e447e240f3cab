// The device's classifier, by method: how it starts, learns from the takes of a new speaker, and answers.
//
//   learner.start();                       as the base
//   learner.begin(recordings);             what is done once: Status
//   learner.step(recordings, step);        Status
//   learner.end();                         where there is something to do behind the last step: Status
//   learner.classify(example, logits);
//   learner.parameters();                  what was learned; learner.restore(read) starts from that
//
// One that trains a part of the model takes a journal as well: learner.step(recordings, step, journal).
#pragma once

#include <personalise_factory.hpp>
#include <personalise_probe.hpp>

#include "../flash_rows.hpp"
#include "doubts.hpp"
#include "methods.hpp"
#include "replayed.hpp"

namespace personalise {

using attune::Status;

inline constexpr int kSteps = 100;
using Loss = attune::CrossEntropy<>;

template <Method method>
constexpr typename Optimizer<method>::Options options(const Recordings& recordings) {
  return {.learning_rate = learning_rate(method) * static_cast<float>(recordings.rate_times),
          .weight_decay = 0};
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
  auto update(const auto& options) { return trainer.update(options); }
  auto step(std::uint32_t, const auto&... arguments) { return trainer.step(arguments...); }
};

/// Trains a part of the model, a recording of each digit a step.
template <Method method, const auto& kBase, const auto& kFront>
class Learner {
 public:
  using Model = typename Trained<method, kFront>::Model;
  static constexpr int kBatch = steps_by_take(method) ? 1 : kDigits + rehearsed(method) + replayed(method);
  using Trainer = attune::Trainer<Model, LossOf<method>, Optimizer<method>, kBatch, Plan<method>>;
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = Trainer::memory(attune::Feeding::kOneByOne);
    if constexpr (filters(method)) memory.state += sizeof(Doubts<Trainer>);
    if constexpr (replayed(method) > 0) memory.state += ReplayedTakes::kRam;
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
    if constexpr (replayed(method) > 0) return replayed_.begin(recordings);
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
    if constexpr (replayed(method) > 0) {
      attune::Rng draws{static_cast<std::uint64_t>(step)};
      for (int i = 0; i < replayed(method); ++i) {
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
  [[no_unique_address]] std::conditional_t<(replayed(method) > 0), ReplayedTakes, NoTakes> replayed_{};
};

/// Trains a part of the model without labels, by InfoMax: a pass for the mean probabilities of all takes,
/// then one for gradients.
template <Method method, const auto& kBase, const auto& kFront>
  requires(maximizes_information(method))
class Learner<method, kBase, kFront> {
 public:
  using Model = typename Trained<method, kFront>::Model;
  using Trainer = attune::Trainer<Model, attune::Entropy, attune::AdamW, kNumTakes, Plan<method>>;
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = Trainer::memory(attune::Feeding::kOneByOne);
    memory.state += sizeof(Learner::marginal_);
    return memory;
  }
  static constexpr int kTrainedParameters = sizeof(typename Model::Parameters) / sizeof(float);
  static constexpr int kSteps = 60;

  void start() { start_as_base<kBase>(trainer_); }
  Status begin(const Recordings&) { return Status::kOk; }
  Status step(const Recordings& recordings, int) {
    Logits logits, target;
    marginal_.clear();
    for (int i = 0; i < kNumTakes; ++i) {
      load(recordings.take(i), example_);
      Status status = classify(example_, logits);
      if (status == Status::kOk) status = marginal_.add(logits);
      if (status != Status::kOk) return status;
    }
    if (const Status status = marginal_.logarithms(target); status != Status::kOk) return status;
    for (int i = 0; i < kNumTakes; ++i) {
      load(recordings.take(i), example_);
      const auto added = trainer_.accumulate(example_.tokens, target, example_.padding);
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

/// The base as it is.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kBaseline, kBase, kFront> {
 public:
  static constexpr attune::MemoryReport memory() {
    attune::MemoryReport memory = attune::inference_memory<Whole>();
    memory.parameters = 0;  // which are in flash
    return memory;
  }
  static constexpr int kTrainedParameters = 0;
  static constexpr int kSteps = 0;

  void start() {}
  Status begin(const Recordings&) { return Status::kOk; }
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
  Status begin(const Recordings& recordings) {
    for (int i = 0; i < kNumTakes; ++i) {
      const Recording take = recordings.take(i);
      labels_[i] = take.digit;
      front_.compute(take, features_[i]);
    }
    return Status::kOk;
  }
  Status step(const Recordings& recordings, int step) {
    for (int digit = 0; digit < kDigits; ++digit) {
      const int take = take_of(step, digit);
      const int label[] = {labels_[take]};
      const auto added = trainer_.accumulate(features_[take], label);
      if (!added.ok()) return added.status;
    }
    return trainer_.update(options<Method::kCached>(recordings)).status;
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
  unsigned char labels_[kNumTakes]{};
};

/// The last layer alone, behind the features of the constant front.
template <const auto& kBase, const auto& kFront>
class LinearProbe {
 public:
  static constexpr int kTrainedParameters = sizeof(Head::Parameters) / sizeof(float);

  void start(int old_classes = kDigits) { attune::grow_head(kBase.template layer<1>(), head_, old_classes); }
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

 protected:
  Head::Parameters head_{};
  CachedFeatures<kFront> front_{};
};

/// Each digit is the mean m of its takes' features; the nearest one has the largest x·m − |m|²/2, so that it
/// is a linear layer.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kNearestMean, kBase, kFront> : public LinearProbe<kBase, kFront> {
  using LinearProbe<kBase, kFront>::front_;
  using LinearProbe<kBase, kFront>::head_;

 public:
  static constexpr attune::MemoryReport memory() {
    return {.parameters = sizeof(Head::Parameters), .scratch = sizeof(CachedFeatures<kFront>)};
  }
  static constexpr int kSteps = 0;

  Status begin(const Recordings& recordings) {
    head_ = {};
    Features features;
    for (int i = 0; i < kNumTakes; ++i) {
      const Recording take = recordings.take(i);
      front_.compute(take, features);
      for (int j = 0; j < kWidth; ++j) head_.weight(j, take.digit) += features(0, j) / kTakesOfDigit;
    }
    for (int digit = 0; digit < kDigits; ++digit) {
      float squares = 0;
      for (int i = 0; i < kWidth; ++i) squares += head_.weight(i, digit) * head_.weight(i, digit);
      head_.bias(0, digit) = -squares / 2;
    }
    return Status::kOk;
  }
  Status step(const Recordings&, int) { return Status::kOk; }
};

/// The last layer is solved for: from the takes' features, and from the factory's, so that little is
/// forgotten.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kClosedForm, kBase, kFront> : public LinearProbe<kBase, kFront> {
  using LinearProbe<kBase, kFront>::front_;
  using LinearProbe<kBase, kFront>::head_;

 public:
  static constexpr attune::MemoryReport memory() {
    return {.parameters = sizeof(Head::Parameters) + sizeof(HeadInClosedForm),
            .scratch = sizeof(CachedFeatures<kFront>) + sizeof(HeadInClosedForm::Scratch)};
  }
  static constexpr int kSteps = 1;  // which is all of it

  Status begin(const Recordings&) { return Status::kOk; }
  Status step(const Recordings& recordings, int) {
    sums_.clear();
    Features features;
    for (int i = 0; i < kNumTakes; ++i) {
      const Recording take = recordings.take(i);
      front_.compute(take, features);
      if (const Status status = sums_.add(features, take.digit); status != Status::kOk) return status;
    }
    return sums_.solve(head_, flash_rows<HeadInClosedForm, personalise_factory>()[0], head_, scratch_);
  }

 private:
  HeadInClosedForm sums_{};
  HeadInClosedForm::Scratch scratch_{};
};

/// The same without labels. Features of the takes are kept in 8 bits.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kClosedFormUnlabeled, kBase, kFront> : public LinearProbe<kBase, kFront> {
  using LinearProbe<kBase, kFront>::front_;
  using LinearProbe<kBase, kFront>::head_;

 public:
  static constexpr attune::MemoryReport memory() {
    return {.parameters = sizeof(Head::Parameters),
            .scratch = sizeof(CachedFeatures<kFront>) + sizeof(HeadWithoutLabels),
            .inputs = sizeof(Learner::takes_)};
  }
  static constexpr int kSteps = 1;  // which is all of it

  Status begin(const Recordings&) { return Status::kOk; }
  Status step(const Recordings& recordings, int) {
    Features features;
    int known[kNumTakes];
    for (int i = 0; i < kNumTakes; ++i) {
      front_.compute(recordings.take(i), features);
      takes_[i].pack(features);
      known[i] = recordings.known_label(i);
    }
    const auto take = [this](int i, Features& to) {
      takes_[i].unpack(to);
      return Status::kOk;
    };
    result_ =
        learning_.learn(kBase.template layer<1>(), flash_rows<HeadInClosedForm, personalise_factory>()[0],
                        kNumTakes, take, probe, head_, known);
    return result_.status;
  }
  [[nodiscard]] const attune::UnlabeledResult<>& result() const { return result_; }

 private:
  /// A head on factory recordings.
  static attune::Evaluation<> probe(const Head::Parameters& head) {
    attune::Evaluation<> evaluation;
    Features features;
    Logits logits;
    Head::InferenceScratch scratch;
    for (const PackedFeatures& row : flash_rows<PackedFeatures, personalise_probe>()) {
      row.unpack(features);
      Head::forward(head, features, logits, scratch);
      static_cast<void>(evaluation.add(logits, row.digit));
    }
    return evaluation;
  }

  HeadWithoutLabels learning_{};
  attune::UnlabeledResult<> result_{};
  PackedFeatures takes_[kNumTakes]{};
};

/// Trains by forward passes alone, ten recordings a step.
template <const auto& kBase, const auto& kFront>
class Learner<Method::kForwardOnly, kBase, kFront> {
 public:
  using Model = typename Trained<Method::kForwardOnly, kFront>::Model;
  using Trainer = attune::ForwardOnlyTrainer<Model, Loss, kDigits, attune::Perturbation{1e-2}>;
  static constexpr attune::MemoryReport memory() { return Trainer::memory(); }
  static constexpr int kTrainedParameters = sizeof(typename Model::Parameters) / sizeof(float);
  static constexpr int kSteps = 10 * personalise::kSteps;

  void start() {
    trainer_.start_from(
        [](typename Model::Parameters& parameters) {
          attune::copy_parameters(kBase.template layer<1>(), parameters.template layer<1>());
        },
        attune::XavierUniform{}, attune::Rng{1});
  }
  Status begin(const Recordings&) { return Status::kOk; }
  Status step(const Recordings& recordings, int step) {
    for (int digit = 0; digit < kDigits; ++digit) {
      load(recordings.take(take_of(step, digit)), example_);
      const auto added = trainer_.accumulate(example_.tokens, example_.digit, example_.padding);
      if (!added.ok()) return added.status;
    }
    return trainer_
        .update({.learning_rate =
                     learning_rate(Method::kForwardOnly) * static_cast<float>(recordings.rate_times)})
        .status;
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
  Example example_{};
};

}  // namespace personalise
