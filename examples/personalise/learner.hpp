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
#include "training.hpp"

namespace personalise {

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
    return trainer_.update({.learning_rate = learning_rate(Method::kForwardOnly) * recordings.rate_times})
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
