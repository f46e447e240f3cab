// A head that learns without labels: what it gains if its examples are as expected, and that it stays the
// base's if they are not.
#include <attune/training/unlabeled_head.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <attune/core/rng.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kFeatures = 6, kClasses = 3, kExamples = 60;
using Learning = UnlabeledHead<kFeatures, kClasses, kExamples>;
using Sums = Learning::Sums;
using Parameters = Learning::Head::Parameters;
using Features = Learning::Features;

struct Example {
  Features x;
  int label;
};
using Examples = std::array<Example, kExamples>;

/// Each class raises a feature. A domain of its own turns all examples, as a new voice does.
Example draw(Rng& rng, int label, float turned, float noise = 0.55f) {
  Example example;
  example.label = label;
  for (int i = 0; i < kFeatures; ++i) {
    const float here = i == label ? 2.0f - turned : 0.0f, next = i == (label + 1) % kClasses ? turned : 0.0f;
    example.x.values[i] = here + next + noise * rng.normal();
  }
  return example;
}
Examples draw_all(std::uint64_t seed, float turned) {
  Rng rng(seed);
  Examples examples;
  for (int i = 0; i < kExamples; ++i) examples[static_cast<std::size_t>(i)] = draw(rng, i % kClasses, turned);
  return examples;
}

struct Factory {
  Sums sums{};
  Parameters base{};
  Examples probe = draw_all(100, 0);
  Sums::Scratch scratch;

  Factory() {
    Rng rng(1);
    for (int i = 0; i < 600; ++i) {
      const Example e = draw(rng, i % kClasses, 0);
      EXPECT_EQ(sums.add(e.x, e.label), Status::kOk);
    }
    Sums own = sums;
    EXPECT_EQ(own.solve(Parameters{}, Sums{}, base, scratch), Status::kOk);
  }
};
Factory& factory() {
  static Factory it;
  return it;
}

float accuracy(const Parameters& head, const Examples& examples) {
  Evaluation<> evaluation;
  Learning::Head::Output logits;
  Learning::Head::InferenceScratch scratch;
  for (const Example& e : examples) {
    Learning::Head::forward(head, e.x, logits, scratch);
    EXPECT_EQ(evaluation.add(logits, e.label), Status::kOk);
  }
  return evaluation.accuracy();
}
Evaluation<> no_probe(const Parameters&) { return {}; }

Learning learning;

UnlabeledResult<> learn(const Examples& examples, Parameters& head, const Learning::Options& options = {},
                        std::span<const int> known = {}) {
  const auto features = [&](int i, Features& to) {
    to = examples[static_cast<std::size_t>(i)].x;
    return Status::kOk;
  };
  return learning.learn(factory().base, factory().sums, kExamples, features, no_probe, head, known, options);
}
bool is_base(const Parameters& head) { return hash_bits(head) == hash_bits(factory().base); }

}  // namespace

TEST(UnlabeledHead, learns_a_new_domain_without_labels) {
  const Examples examples = draw_all(2, 0.9f), others = draw_all(3, 0.9f);
  Parameters head;
  const float before = accuracy(factory().base, others);
  const UnlabeledResult<> result = learn(examples, head);
  EXPECT_EQ(result.status, Status::kOk);
  EXPECT_EQ(result.objection, Objection::kNone);
  EXPECT_EQ(result.rounds, 4);
  EXPECT_GT(accuracy(head, others), before + 0.03f);
  EXPECT_GT(accuracy(head, factory().probe), 0.9f);
}

TEST(UnlabeledHead, learns_more_from_a_few_labels) {
  const Examples examples = draw_all(4, 1.1f), others = draw_all(5, 1.1f);
  std::array<int, kExamples> known;
  known.fill(kUnlabeled);
  for (std::size_t i = 0; i < 12; ++i) known[i] = examples[i].label;
  Parameters without, with;
  const Learning::Options options{.guard = {.largest_imbalance = 1, .least_agreement = 0}};
  EXPECT_TRUE(learn(examples, without, options).ok());
  EXPECT_TRUE(learn(examples, with, options, known).ok());
  EXPECT_GT(accuracy(with, others), accuracy(without, others));
}

TEST(UnlabeledHead, has_the_same_bits_on_all_targets) {
  Parameters head;
  EXPECT_EQ(learn(draw_all(2, 0.9f), head).rounds, 4);
  EXPECT_EQ(hash_bits(head), check::by_policy(0x3B1B5F88u, 0x38511E0Eu));
}

TEST(UnlabeledHead, reads_examples_in_order_in_passes) {
  const Examples examples = draw_all(2, 0.9f);
  int calls = 0;
  bool ordered = true;
  const auto features = [&](int i, Features& to) {
    ordered = ordered && i == calls++ % kExamples;
    to = examples[static_cast<std::size_t>(i)].x;
    return Status::kOk;
  };
  Parameters head, again;
  EXPECT_TRUE(learning.learn(factory().base, factory().sums, kExamples, features, no_probe, head).ok());
  EXPECT_EQ(calls, 9 * kExamples);
  EXPECT_TRUE(ordered);
  EXPECT_TRUE(learn(examples, again).ok());  // nothing is left of the call before
  EXPECT_EQ(hash_bits(again), hash_bits(head));
}

TEST(UnlabeledHead, stays_the_base_on_unsuitable_examples) {
  Rng rng(6);
  Examples one_class, silence, noise, skewed;
  for (int i = 0; i < kExamples; ++i) {
    const auto at = static_cast<std::size_t>(i);
    one_class[at] = draw(rng, 1, 0.6f);
    skewed[at] = draw(rng, i % 10 == 0 ? 2 : i % 5 == 0 ? 1 : 0, 0.6f);
    silence[at].x = {};
    for (float& value : noise[at].x.values) value = 0.6f + 0.1f * rng.normal();
  }
  Parameters head;
  EXPECT_EQ(learn(one_class, head).objection, Objection::kImbalance);
  EXPECT_TRUE(is_base(head));
  EXPECT_EQ(learn(skewed, head).objection, Objection::kImbalance);
  EXPECT_TRUE(is_base(head));
  EXPECT_EQ(learn(silence, head).objection, Objection::kUnsure);
  EXPECT_TRUE(is_base(head));
  EXPECT_EQ(learn(noise, head).objection, Objection::kUnsure);
  constexpr int kTooFew[] = {0, 1};
  EXPECT_EQ(learn(noise, head, {}, kTooFew).status, Status::kInvalidLength);
  EXPECT_TRUE(is_base(head));
  Examples known_domain = draw_all(7, 0);  // as another user, of whom the factory had examples
  for (Example& e : known_domain) e = draw(rng, e.label, 0, 0.1f);
  EXPECT_EQ(learn(known_domain, head).objection, Objection::kNothingNew);
  EXPECT_TRUE(is_base(head));
  // Balanced examples, but the prior is wrong.
  const Examples examples = draw_all(2, 0.9f);
  const UnlabeledResult<> result = learn(examples, head, {.balance = {.prior = {0.9f, 0.05f, 0.05f}}});
  EXPECT_EQ(result.objection, Objection::kImbalance);
  EXPECT_GT(result.imbalance, 0.4f);
  EXPECT_TRUE(is_base(head));
}

TEST(UnlabeledHead, stays_the_base_where_heads_contradict_it) {
  Rng rng(8);
  Examples skewed;
  for (int i = 0; i < kExamples; ++i) {
    skewed[static_cast<std::size_t>(i)] = draw(rng, i % 20 == 0 ? 2 : i % 20 == 1 ? 1 : 0, 0.6f);
  }
  Parameters head;
  const Learning::Options blind{.guard = {.largest_imbalance = 1, .least_agreement = 0}};
  const UnlabeledResult<> seen =
      learn(skewed, head, {.guard = {.largest_imbalance = 1, .least_agreement = 0.97f}});
  EXPECT_EQ(seen.objection, Objection::kDisagreement);
  EXPECT_LT(seen.agreement, 0.97f);
  EXPECT_LT(seen.rounds, 4);
  const float guarded = accuracy(head, skewed);
  EXPECT_EQ(learn(skewed, head, blind).rounds, 4);
  EXPECT_GT(guarded, accuracy(head, skewed));
}

TEST(UnlabeledHead, stays_the_base_where_it_would_forget) {
  const Examples examples = draw_all(2, 0.9f);
  const auto features = [&](int i, Features& to) {
    to = examples[static_cast<std::size_t>(i)].x;
    return Status::kOk;
  };
  int probes = 0;
  const auto forgets = [&](const Parameters&) {
    return Evaluation<>{.right = probes++ < 2 ? 20 : 18, .count = 20};
  };
  Parameters head, first;
  const auto result = learning.learn(factory().base, factory().sums, kExamples, features, forgets, head);
  EXPECT_EQ(result.objection, Objection::kForgetting);
  EXPECT_EQ(result.rounds, 1);
  EXPECT_EQ(learn(examples, first, {.rounds = 1}).rounds, 1);
  EXPECT_EQ(hash_bits(head), hash_bits(first));
}

TEST(UnlabeledHead, begins_with_a_base_of_any_form) {
  Learning::Head::ParametersOf<Int8Weights, Tensor> small;
  EXPECT_EQ(quantize(factory().base, small), Status::kOk);
  Parameters widened, of_small, of_widened;
  copy_parameters(small, widened);
  const Examples examples = draw_all(2, 0.9f);
  const auto features = [&](int i, Features& to) {
    to = examples[static_cast<std::size_t>(i)].x;
    return Status::kOk;
  };
  EXPECT_EQ(learning.learn(small, factory().sums, kExamples, features, no_probe, of_small).rounds, 4);
  EXPECT_EQ(learning.learn(widened, factory().sums, kExamples, features, no_probe, of_widened).rounds, 4);
  EXPECT_EQ(hash_bits(of_small), hash_bits(of_widened));
}

TEST(UnlabeledHead, is_the_base_after_bad_input) {
  const Examples examples = draw_all(2, 0.9f);
  Parameters head{};
  const auto learn_count = [&](int count, int failing, std::span<const int> known = {}) {
    const auto features = [&](int i, Features& to) {
      to = examples[static_cast<std::size_t>(i)].x;
      return i == failing ? Status::kUnreadable : Status::kOk;
    };
    return learning.learn(factory().base, factory().sums, count, features, no_probe, head, known).status;
  };
  EXPECT_EQ(learn_count(0, -1), Status::kInvalidLength);
  EXPECT_EQ(learn_count(-3, -1), Status::kInvalidLength);
  EXPECT_EQ(learn_count(kExamples + 1, -1), Status::kInvalidLength);
  EXPECT_EQ(learn_count(kExamples, 7), Status::kUnreadable);
  std::array<int, kExamples> known;
  known.fill(kUnlabeled);
  known[9] = kClasses;
  EXPECT_EQ(learn_count(kExamples, -1, known), Status::kInvalidTarget);
  EXPECT_EQ(learn_count(kExamples, -1, std::span(known).first(3)), Status::kInvalidLength);
  EXPECT_TRUE(is_base(head));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const UnlabeledGuard<> guard : {UnlabeledGuard<>{.sure = kNan}, UnlabeledGuard<>{.least_clear = -1},
                                       UnlabeledGuard<>{.largest_drop = 2}}) {
    EXPECT_EQ(learn(examples, head, {.guard = guard}).status, Status::kInvalidWeightDecay);
  }
  EXPECT_EQ(learn(examples, head, {.rounds = 0}).status, Status::kInvalidWeightDecay);
  EXPECT_EQ(learn(examples, head, {.balance = {.pull = 0}}).status, Status::kInvalidWeightDecay);
  EXPECT_EQ(learn(examples, head, {.balance = {.prior = {1, 0, 0}}}).status, Status::kInvalidClassWeight);
  EXPECT_EQ(learn(examples, head, {.head = {.ridge = -1}}).status, Status::kInvalidWeightDecay);
  EXPECT_TRUE(is_base(head));
  Examples broken = examples;
  broken[4].x.values[2] = kNan;
  EXPECT_EQ(learn(broken, head).status, Status::kNotFinite);
  EXPECT_TRUE(is_base(head));
}
