// Trainers without labels do what a program does by hand: InfoMax in two passes, and an UnlabeledHead behind
// a constant body.
#include <attune/training/unlabeled_trainer.hpp>

#include <array>
#include <limits>

#include <attune/core/initialize.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/linear_probe.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/adam.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 3, kWidth = 6, kClasses = 3, kTakes = 30;
using Embed = Linear<LinearShape{.rows = kTokens, .d_in = kClasses, .d_out = kWidth}>;
using Mean = Pooling<PoolingShape{.seq_len = kTokens, .d_model = kWidth}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = kWidth, .d_out = kClasses}>;
using Model = Sequential<Embed, Mean, Head>;
constexpr int kUnknown = kUnlabeled;

Model::Parameters base;
using ByGradients = InfoMaxTrainer<Model, AdamW, kTakes>;
using ByHead = UnlabeledHeadTrainer<LinearProbe<Model, base>, LinearProbeFeatures<Model, base>, kTakes>;
ByGradients trainer, other;
ByHead head, other_head;

/// Each class raises one number, in a domain of its own the next one, too.
Model::Input example(int i) {
  Rng rng(static_cast<std::uint64_t>(i) + 10);
  Model::Input x;
  for (int token = 0; token < kTokens; ++token) {
    for (int j = 0; j < kClasses; ++j) {
      x(token, j) = 0.4f * rng.normal() + (j == i % kClasses ? 1.2f : j == (i + 1) % kClasses ? 0.7f : 0.0f);
    }
  }
  return x;
}
/// All without labels, or every third with one.
auto takes(int labeled_every = kTakes + 1) {
  return [labeled_every](int i, const auto& learn) {
    return learn(example(i), i % labeled_every == labeled_every - 1 ? i % kClasses : kUnknown);
  };
}
void begin() {
  base = {};
  for (int i = 0; i < kClasses; ++i) base.layer<0>().weight(i, i) = base.layer<2>().weight(i, i) = 2;
  trainer.load(base);
  other.load(base);
  head.initialize(XavierUniform{}, Rng{1});
  other_head.initialize(XavierUniform{}, Rng{1});
}
/// A step of InfoMax as a program writes it.
void step_by_hand(ByGradients& to, int labeled_every, float learning_rate) {
  ClassMarginal<kClasses> marginal{};
  Model::Output logits, target;
  const auto is_labeled = [&](int i) { return i % labeled_every == labeled_every - 1; };
  for (int i = 0; i < kTakes; ++i) {
    if (is_labeled(i)) continue;
    EXPECT_EQ(to.predict(example(i), logits), Status::kOk);
    EXPECT_EQ(marginal.add(logits), Status::kOk);
  }
  EXPECT_EQ(marginal.logarithms(target), Status::kOk);
  for (int i = 0; i < kTakes; ++i) {
    Model::Output label{};
    label(0, i % kClasses) = 1;
    EXPECT_TRUE(to.accumulate(example(i), is_labeled(i) ? label : target).ok());
  }
  EXPECT_TRUE(to.update({.learning_rate = learning_rate}).ok());
}

}  // namespace

TEST(InfoMaxTrainer, steps_as_two_passes_by_hand) {
  for (const int labeled_every : {kTakes + 1, 3}) {
    begin();
    for (int step = 0; step < 5; ++step) {
      EXPECT_TRUE(trainer.learn(kTakes, takes(labeled_every), {.learning_rate = 0.02f}).ok());
      step_by_hand(other, labeled_every, 0.02f);
    }
    EXPECT_EQ(hash_bits(trainer.parameters()), hash_bits(other.parameters()));
    EXPECT_NE(hash_bits(trainer.parameters()), hash_bits(base));
  }
}

TEST(InfoMaxTrainer, learns_from_fewer_takes_and_from_labels_alone) {
  begin();
  EXPECT_TRUE(trainer.learn(2, takes(), {.learning_rate = 0.02f}).ok());
  const auto first = trainer.learn(kTakes, takes(1), {.learning_rate = 0.05f});
  auto last = first;
  for (int step = 0; step < 20; ++step) last = trainer.learn(kTakes, takes(1), {.learning_rate = 0.05f});
  EXPECT_TRUE(first.ok() && last.ok());
  EXPECT_LT(last.loss, 0.8f * first.loss);
}

TEST(InfoMaxTrainer, changes_nothing_on_an_error) {
  begin();
  const auto hash = hash_bits(trainer.parameters());
  const auto refused = [&](Status status, int count, const auto& of) {
    EXPECT_EQ(trainer.learn(count, of, {.learning_rate = 0.1f}).status, status);
    EXPECT_EQ(hash_bits(trainer.parameters()), hash);
  };
  refused(Status::kInvalidLength, 0, takes());
  refused(Status::kInvalidLength, kTakes + 1, takes());
  const auto labeled = [](int label) {
    return [label](int i, const auto& learn) { return learn(example(i), i == 20 ? label : kUnknown); };
  };
  refused(Status::kInvalidTarget, kTakes, labeled(kClasses));
  refused(Status::kInvalidTarget, kTakes, labeled(-2));
  refused(Status::kFlashFault, kTakes, [](int i, const auto& learn) {
    return i < 20 ? learn(example(i), kUnknown) : Status::kFlashFault;
  });
  refused(Status::kIncompleteBatch, kTakes, [](int i, const auto& learn) {
    return i == 7 ? Status::kOk : learn(example(i), kUnknown);  // skips a take
  });
  refused(Status::kIncompleteBatch, kTakes / 2, [](int i, const auto& learn) {
    if (i == 3) (void)learn(example(i + kTakes), kUnknown);  // two takes as one
    return learn(example(i), kUnknown);
  });
  refused(Status::kNotFinite, kTakes, [](int i, const auto& learn) {
    Model::Input x = example(i);
    if (i == 25) x(0, 0) = std::numeric_limits<float>::infinity();
    return learn(x, kUnknown);
  });
  step_by_hand(other, kTakes + 1, 0.1f);
  EXPECT_TRUE(trainer.learn(kTakes, takes(), {.learning_rate = 0.1f}).ok());  // nothing is left of the others
  EXPECT_EQ(hash_bits(trainer.parameters()), hash_bits(other.parameters()));
}

TEST(UnlabeledHeadTrainer, learns_the_head_of_an_unlabeled_head) {
  static UnlabeledHead<kWidth, kClasses, kTakes> learning;
  static UnlabeledHead<kWidth, kClasses, kTakes>::Sums factory;
  const ByHead::Options options{.head = {.ridge = 2}, .guard = {.least_clear = 0, .least_agreement = 0}};
  for (const bool with_factory : {false, true}) {
    begin();
    factory.clear();
    std::array<int, kTakes> known;
    std::array<Mean::Output, kTakes> features;
    Embed::Output embedded;
    Embed::InferenceScratch none;
    Mean::InferenceScratch nothing;
    for (std::size_t i = 0; i < kTakes; ++i) {
      known[i] = i % 3 == 2 ? static_cast<int>(i) % kClasses : kUnknown;
      infer<Embed>(base.layer<0>(), example(static_cast<int>(i)), embedded, none);
      infer<Mean>({}, embedded, features[i], nothing);
    }
    for (int i = 0; i < kClasses; ++i)
      EXPECT_EQ(factory.add(features[static_cast<std::size_t>(i)], i), Status::kOk);
    const auto get = [&](int i, Mean::Output& to) {
      to = features[static_cast<std::size_t>(i)];
      return Status::kOk;
    };
    const auto no_probe = [](const Head::Parameters&) { return Evaluation<>{}; };
    Head::Parameters expected;
    const auto by_hand =
        with_factory
            ? learning.learn(base.layer<2>(), factory, kTakes, get, no_probe, expected, known, options)
            : learning.learn(base.layer<2>(), kTakes, get, expected, known, options);
    const auto result = with_factory ? head.learn(kTakes, takes(3), options, factory, no_probe)
                                     : head.learn(kTakes, takes(3), options);
    EXPECT_TRUE(result.ok() && by_hand.ok());
    EXPECT_EQ(result.objection, Objection::kNone);
    EXPECT_EQ(result.rounds, 4);
    EXPECT_EQ(by_hand.rounds, 4);
    const auto& learned = head.parameters().layer<2>();
    EXPECT_TRUE(check::same_bits(learned.weight, expected.weight) &&
                check::same_bits(learned.bias, expected.bias));
    EXPECT_FALSE(check::same_bits(learned.weight, base.layer<2>().weight));
  }
}

TEST(UnlabeledHead, without_a_factory_is_one_with_an_empty_one) {
  begin();
  static UnlabeledHead<kWidth, kClasses, kTakes> learning;
  static const UnlabeledHead<kWidth, kClasses, kTakes>::Sums empty{};
  const auto get = [](int i, Mean::Output& to) {
    for (int j = 0; j < kWidth; ++j) to(0, j) = j < kClasses ? example(i)(0, j) : 0.0f;
    return Status::kOk;
  };
  const auto no_probe = [](const Head::Parameters&) { return Evaluation<>{}; };
  const ByHead::Options options{.guard = {.least_clear = 0, .largest_imbalance = 1, .least_agreement = 0}};
  Head::Parameters without, with;
  const auto result = learning.learn(base.layer<2>(), kTakes, get, without, {}, options);
  EXPECT_EQ(result.rounds, 4);
  EXPECT_TRUE(learning.learn(base.layer<2>(), empty, kTakes, get, no_probe, with, {}, options).ok());
  EXPECT_EQ(hash_bits(without), hash_bits(with));
}

TEST(UnlabeledHeadTrainer, returns_to_the_base_if_the_guard_objects_or_on_an_error) {
  begin();
  const auto hash = hash_bits(head.parameters());
  const ByHead::Options options{.guard = {.least_clear = 0, .least_agreement = 0}};
  const auto returns = [&](const auto& of, int count, const ByHead::Options& with) {
    EXPECT_TRUE(head.learn(kTakes, takes(), options).ok());
    EXPECT_NE(hash_bits(head.parameters()), hash);
    const auto result = head.learn(count, of, with);
    if (result.status != Status::kInvalidLength) {
      EXPECT_EQ(hash_bits(head.parameters()), hash);
    }
    return result;
  };
  const auto unsure = returns(takes(), kTakes, {.guard = {.sure = 1, .least_clear = 1}});
  EXPECT_TRUE(unsure.ok());
  EXPECT_EQ(unsure.objection, Objection::kUnsure);
  EXPECT_EQ(returns(takes(), 0, options).status, Status::kInvalidLength);
  EXPECT_EQ(returns(takes(), kTakes + 1, options).status, Status::kInvalidLength);
  const auto wrong = [](int i, const auto& learn) { return learn(example(i), i == 7 ? kClasses : kUnknown); };
  EXPECT_EQ(returns(wrong, kTakes, options).status, Status::kInvalidTarget);
  const auto faulty = [](int i, const auto& learn) {
    return i < 7 ? learn(example(i), kUnknown) : Status::kFlashFault;
  };
  EXPECT_EQ(returns(faulty, kTakes, options).status, Status::kFlashFault);
  const auto skipping = [](int i, const auto& learn) {
    return i == 7 ? Status::kOk : learn(example(i), kUnknown);
  };
  EXPECT_EQ(returns(skipping, kTakes, options).status, Status::kIncompleteBatch);
  const auto forgetful = [](int i, const auto& learn) {
    Model::Input x = example(i);
    if (i == 7) x(0, 0) = std::numeric_limits<float>::quiet_NaN();
    (void)learn(x, kUnknown);
    return Status::kOk;
  };
  EXPECT_EQ(returns(forgetful, kTakes, options).status, Status::kNotFinite);
  static ByHead unborn;
  EXPECT_EQ(unborn.learn(kTakes, takes()).status, Status::kNotInitialized);
}

TEST(UnlabeledHeadTrainer, resumes_with_its_head) {
  begin();
  const ByHead::Options options{.guard = {.least_clear = 0, .least_agreement = 0}};
  EXPECT_TRUE(head.learn(kTakes, takes(), options).ok());
  EXPECT_EQ(other_head.resume(head.state()), Status::kOk);
  EXPECT_EQ(hash_bits(other_head.parameters()), hash_bits(head.parameters()));
  EXPECT_EQ(other_head.state().steps, std::uint64_t{1});
  Model::Output y, resumed;
  EXPECT_EQ(head.predict(example(1), y), Status::kOk);
  EXPECT_EQ(other_head.predict(example(1), resumed), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, resumed));
}

TEST(UnlabeledTrainers, report_their_memory) {
  EXPECT_EQ(ByHead::memory().object(), sizeof(ByHead));
  EXPECT_EQ(ByGradients::memory().object(), sizeof(ByGradients));
  EXPECT_EQ(sizeof(ByGradients), sizeof(Trainer<Model, SemiSupervised, AdamW, kTakes>));
}
