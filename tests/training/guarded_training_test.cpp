// Training that is guarded: what it keeps of trainings that go well, diverge, or learn from wrong labels,
// silence and the wrong speaker; and what it refuses.
#include <attune/training/guarded_training.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <span>

#include <attune/layers/activation.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/forward_only.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kFeatures = 8, kClasses = 4, kBatch = 8;
using Model = Sequential<Linear<LinearShape{1, kFeatures, 16}>, ActivationLayer<Activation::kRelu, 1, 16>,
                         Linear<LinearShape{1, 16, kClasses}>>;
using Device = Trainer<Model, CrossEntropy<>, AdamW, kBatch>;
using Guard = GuardedTraining<Device>;

struct Example {
  Model::Input x;
  int label;
};
// What a speaker says: a class is where a feature is large; speakers differ in another feature, and in how
// far classes are shifted.
Example say(Rng& rng, int speaker) {
  Example example;
  example.label = static_cast<int>(rng.uniform(0.0f, kClasses - 0.001f));
  for (int i = 0; i < kFeatures; ++i) example.x.values[i] = rng.uniform(-0.6f, 0.6f);
  example.x.values[example.label] += 1.0f;
  example.x.values[(example.label + speaker) % kClasses] += speaker > 0 ? 1.1f : 0.0f;
  example.x.values[kClasses + speaker] += 1.0f;
  return example;
}

template <std::size_t count>
struct Set {
  Example examples[count];
  Set(Rng rng, int speaker) {
    for (Example& example : examples) example = say(rng, speaker);
  }
};

template <class SomeTrainer>
Evaluation<> evaluate(SomeTrainer& trainer, std::span<const Example> examples) {
  Evaluation<> evaluation;
  Model::Output logits;
  for (const Example& example : examples) {
    EXPECT_EQ(trainer.predict(example.x, logits), Status::kOk);
    EXPECT_EQ(evaluation.add(logits, example.label), Status::kOk);
  }
  return evaluation;
}

const Set<32> kHeldOut(Rng{11}, 1), kProbe(Rng{12}, 0);
const Set<64> kTest(Rng{13}, 1);
Device device;
Guard guard;
Model::Parameters factory;

// A model that knows speaker 0.
void begin() {
  device.initialize(XavierUniform{}, Rng{1});
  Rng rng(2);
  for (int step = 0; step < 80; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      const Example example = say(rng, 0);
      EXPECT_TRUE(device.accumulate(example.x, example.label).ok());
    }
    EXPECT_TRUE(device.update({.learning_rate = 2e-2f}).ok());
  }
  factory = device.parameters();
  device.load(factory);
  guard = {};
  EXPECT_EQ(guard.begin(device, evaluate(device, kHeldOut.examples), evaluate(device, kProbe.examples)),
            Status::kOk);
}
struct Marks {
  int kept = 0, dropped = 0;
};
// 60 steps of takes that `take(rng)` answers, with a mark every ten.
template <class Take>
Marks learn(float learning_rate, const Take& take) {
  Marks marks;
  Rng rng(3);
  for (int step = 1; step <= 60; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      const Example example = take(rng);
      static_cast<void>(device.accumulate(example.x, example.label));
    }
    static_cast<void>(device.update({.learning_rate = learning_rate}));
    if (step % 10 != 0) continue;
    const auto result =
        guard.mark(device, evaluate(device, kHeldOut.examples), evaluate(device, kProbe.examples));
    EXPECT_EQ(result.status, Status::kOk);
    EXPECT_FALSE(result.kept && result.probe_dropped);
    marks.kept += result.kept;
    marks.dropped += result.probe_dropped;
  }
  return marks;
}
bool is_factory(const Model::Parameters& parameters) {
  return std::memcmp(&parameters, &factory, sizeof factory) == 0;
}

}  // namespace

TEST(GuardedTraining, keeps_the_result_of_good_training) {
  begin();
  const float before = evaluate(device, kTest.examples).accuracy();
  const Marks marks = learn(5e-3f, [](Rng& rng) { return say(rng, rng.uniform(0.0f, 1.0f) < 0.5f); });
  EXPECT_GE(marks.kept, 2);
  EXPECT_EQ(marks.dropped, 0);
  EXPECT_EQ(guard.finish(device), Status::kOk);
  EXPECT_GE(evaluate(device, kTest.examples).accuracy(), before + 0.1f);
  EXPECT_EQ(evaluate(device, kHeldOut.examples).loss(), guard.best_loss());
}

TEST(GuardedTraining, rolls_back_a_training_that_diverges) {
  begin();
  const Marks marks = learn(5.0f, [](Rng& rng) { return say(rng, 1); });
  EXPECT_GE(marks.dropped, 1);
  EXPECT_FALSE(is_factory(device.parameters()));
  EXPECT_EQ(guard.finish(device), Status::kOk);
  EXPECT_TRUE(is_factory(device.parameters()));
}

TEST(GuardedTraining, keeps_no_worse_than_the_base_from_noise_silence_and_a_wrong_speaker) {
  const auto noise = [](Rng& rng) {
    Example example = say(rng, 1);
    example.label = static_cast<int>(rng.uniform(0.0f, kClasses - 0.001f));
    return example;
  };
  const auto silence = [](Rng& rng) {
    Example example = say(rng, 1);
    for (float& value : example.x.values) value = rng.uniform(-0.1f, 0.1f);
    return example;
  };
  const auto wrong_speaker = [](Rng& rng) { return say(rng, 3); };
  const auto expect_no_worse = [](const auto& take) {
    begin();
    const Evaluation<> held_out = evaluate(device, kHeldOut.examples);
    const Evaluation<> probe = evaluate(device, kProbe.examples);
    learn(2e-2f, take);
    // Without the guard something would have been lost.
    const bool lost = evaluate(device, kHeldOut.examples).loss() > held_out.loss() ||
                      evaluate(device, kProbe.examples).accuracy() < probe.accuracy() - 0.1f;
    EXPECT_TRUE(lost);
    EXPECT_EQ(guard.finish(device), Status::kOk);
    EXPECT_LE(evaluate(device, kHeldOut.examples).loss(), held_out.loss());
    EXPECT_GE(evaluate(device, kProbe.examples).accuracy(), probe.accuracy() - 0.1f);
  };
  expect_no_worse(noise);
  expect_no_worse(silence);
  expect_no_worse(wrong_speaker);
}

TEST(GuardedTraining, leaves_a_training_that_ends_best_as_it_is) {
  begin();
  Rng rng(4);
  for (int i = 0; i < kBatch; ++i) {
    const Example example = say(rng, 1);
    EXPECT_TRUE(device.accumulate(example.x, example.label).ok());
  }
  EXPECT_TRUE(device.update({.learning_rate = 1e-3f}).ok());
  EXPECT_TRUE(
      guard.mark(device, evaluate(device, kHeldOut.examples), evaluate(device, kProbe.examples)).kept);
  EXPECT_EQ(guard.finish(device), Status::kOk);
  EXPECT_EQ(device.state().steps, 1u);  // with its moments
}

TEST(GuardedTraining, refuses_calls_out_of_order_and_changes_nothing) {
  begin();
  const Evaluation<> held_out = evaluate(device, kHeldOut.examples),
                     probe = evaluate(device, kProbe.examples);
  Guard fresh;
  EXPECT_EQ(fresh.mark(device, held_out, probe).status, Status::kNotInitialized);
  EXPECT_EQ(fresh.finish(device), Status::kNotInitialized);
  EXPECT_EQ(fresh.begin(device, {}, probe), Status::kNoTargets);
  static const Device nobody{};
  EXPECT_EQ(fresh.begin(nobody, held_out, probe), Status::kNotInitialized);
  EXPECT_EQ(guard.mark(nobody, held_out, probe).status, Status::kNotInitialized);
  EXPECT_EQ(guard.mark(device, {}, probe).status, Status::kNoTargets);
  EXPECT_TRUE(is_factory(guard.best()));
  // A probe that was not evaluated is one that is forgotten; no probe at all asks for nothing.
  EXPECT_TRUE(guard.mark(device, held_out, {}).probe_dropped);
  EXPECT_EQ(fresh.begin(device, held_out, {}), Status::kOk);
  EXPECT_FALSE(fresh.mark(device, held_out, {}).probe_dropped);
  // Losses that are not numbers are never the best.
  Evaluation<> broken = held_out;
  broken.loss_sum = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(guard.mark(device, broken, probe).kept);
}

TEST(GuardedTraining, allows_exactly_the_largest_drop) {
  begin();
  const Evaluation<> held_out{.loss_sum = 1, .right = 1, .count = 1};
  const auto is_refused = [&](Evaluation<> first, Evaluation<> now, float largest_drop) {
    EXPECT_EQ(guard.begin(device, held_out, first), Status::kOk);
    return guard.mark(device, held_out, now, largest_drop).probe_dropped;
  };
  for (const int count : {7, 10, 30, 100}) {
    for (int right = 0; right <= count; ++right) {
      const Evaluation<> first{.right = right, .count = count};
      for (int tenths = 0; tenths <= 10; ++tenths) {
        const int drop = count * tenths / 10;  // the most rows that may be lost
        if (drop >= right) break;
        const float largest_drop = static_cast<float>(0.1 * tenths);
        EXPECT_FALSE(is_refused(first, {.right = right - drop, .count = count}, largest_drop));
        EXPECT_TRUE(is_refused(first, {.right = right - drop - 1, .count = count}, largest_drop));
      }
    }
  }
}

TEST(GuardedTraining, waits_for_the_end_of_an_update) {
  begin();
  const Evaluation<> held_out = evaluate(device, kHeldOut.examples),
                     probe = evaluate(device, kProbe.examples);
  Rng rng(4);
  for (int i = 0; i < kBatch; ++i) {
    const Example example = say(rng, 1);
    EXPECT_TRUE(device.accumulate(example.x, example.label).ok());
  }
  auto update = device.update_in_slices<64>({.learning_rate = 1e-3f});
  while (device.state().check() == Status::kOk) update.advance();
  EXPECT_EQ(guard.mark(device, held_out, probe).status, Status::kUnderWay);
  EXPECT_EQ(guard.finish(device), Status::kOk);  // which rolls the half of an update back
  EXPECT_TRUE(is_factory(device.parameters()));
}

TEST(GuardedTraining, guards_training_without_backward) {
  using ForwardOnly = ForwardOnlyTrainer<Model, CrossEntropy<>, kBatch>;
  static ForwardOnly trainer;
  static GuardedTraining<ForwardOnly> of_trainer;
  begin();
  trainer.load(factory);
  const Evaluation<> held_out = evaluate(trainer, kHeldOut.examples),
                     probe = evaluate(trainer, kProbe.examples);
  EXPECT_EQ(of_trainer.begin(trainer, held_out, probe), Status::kOk);
  Rng rng(4);
  for (int i = 0; i < kBatch; ++i) {
    const Example example = say(rng, 1);
    EXPECT_TRUE(trainer.accumulate(example.x, example.label).ok());
  }
  EXPECT_TRUE(trainer.update({.learning_rate = 10.0f}).ok());
  EXPECT_FALSE(
      of_trainer.mark(trainer, evaluate(trainer, kHeldOut.examples), evaluate(trainer, kProbe.examples))
          .kept);
  EXPECT_EQ(of_trainer.finish(trainer), Status::kOk);
  EXPECT_TRUE(is_factory(trainer.parameters()));
}

TEST(Evaluation, counts_rows_with_a_target) {
  Evaluation<> evaluation;
  Tensor<float, 3, 2> logits;
  const float values[] = {2, 0, 0, 2, 1, 1};
  std::memcpy(logits.values, values, sizeof values);
  EXPECT_EQ(evaluation.add(logits, std::array{0, 0, 1}), Status::kOk);  // a tie is not right
  EXPECT_EQ(evaluation.count, 3);
  EXPECT_EQ(evaluation.right, 1);
  EXPECT_NEAR(evaluation.loss(), (0.126928f + 2.126928f + 0.693147f) / 3, 1e-5f);
  EXPECT_EQ(evaluation.add(logits, std::array{1, -100, -100}), Status::kOk);
  EXPECT_EQ(evaluation.count, 4);
  EXPECT_EQ(evaluation.add(logits, std::array{1, 2, 0}), Status::kInvalidTarget);
  EXPECT_EQ(evaluation.count, 4);
  logits.values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(evaluation.add(logits, std::array{0, 1, 1}), Status::kOk);
  EXPECT_EQ(evaluation.loss(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(evaluation.right, 2);
  EXPECT_EQ(Evaluation<>{}.accuracy(), 0.0f);
}

TEST(IsPlausible, is_a_threshold_of_the_probability) {
  Tensor<float, 1, 3> logits;
  const float values[] = {5, 0, 1};
  std::memcpy(logits.values, values, sizeof values);
  EXPECT_TRUE(is_plausible(logits, 0));
  EXPECT_FALSE(is_plausible(logits, 1));  // .0066
  EXPECT_FALSE(is_plausible(logits, 2));  // .0179
  EXPECT_TRUE(is_plausible(logits, 2, 0.01f));
  EXPECT_FALSE(is_plausible(logits, 3));
  EXPECT_FALSE(is_plausible(logits, -100));
  const float array[1][3] = {{5, 0, 1}};
  const std::array<double, 3> doubles = {5, 0, 1};
  EXPECT_TRUE(is_plausible(array, 2, 0.01f) && is_plausible(view(logits), 2, 0.01f));
  EXPECT_TRUE(is_plausible(doubles, 2, 0.01) && !is_plausible(doubles, 2));
  logits.values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(is_plausible(logits, 0));
}
