// A head in closed form as a trainer: the head is ClosedFormHead's, and its state knows the examples.
#include <attune/training/closed_form_trainer.hpp>

#include <array>
#include <limits>

#include <attune/core/initialize.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/linear_probe.hpp>
#include <attune/models/sequential.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 3, kWidth = 4, kClasses = 3, kExamples = 12;
using Embed = Linear<LinearShape{.rows = kTokens, .d_in = 2, .d_out = kWidth}>;
using Mean = Pooling<PoolingShape{.seq_len = kTokens, .d_model = kWidth}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = kWidth, .d_out = kClasses}>;
using Model = Sequential<Embed, Mean, Head>;

Model::Parameters base;
Model::ParametersOf<Int8Weights, Tensor> quantized;
template <class Whole, const auto& constants>
using TrainerOf = ClosedFormTrainer<LinearProbe<Whole, constants>, LinearProbeFeatures<Whole, constants>>;
using Device = TrainerOf<Model, base>;
using Sums = Device::Sums;
Device trainer, other;
Sums factory;

Model::Input example(int i) {
  Rng rng(static_cast<std::uint64_t>(i) + 10);
  Model::Input x;
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f) + static_cast<float>(i % kClasses);
  return x;
}
std::array<int, 1> label(int i) { return {i % kClasses}; }
void begin(auto& device) {
  Rng rng(1);
  check::fill_set(base, rng);
  device.initialize(XavierUniform{}, Rng{1});
}
void add(auto& device, int from, int to) {
  for (int i = from; i < to; ++i) EXPECT_TRUE(device.accumulate(example(i), label(i)).ok());
}
/// The head of all examples, and of others, without a trainer.
Head::Parameters by_hand(const auto& of_base, const Sums& of_factory, const Sums::Options& options) {
  static Sums sums;
  static Sums::Scratch scratch;
  sums.clear();
  Embed::Output embedded;
  Embed::InferenceScratch none;
  Mean::InferenceScratch nothing;
  Mean::Output features;
  for (int i = 0; i < kExamples; ++i) {
    infer<Embed>(of_base.template layer<0>(), example(i), embedded, none);
    infer<Mean>({}, embedded, features, nothing);
    EXPECT_EQ(sums.add(features, label(i)[0]), Status::kOk);
  }
  Head::Parameters head;
  EXPECT_EQ(sums.solve(of_base.template layer<2>(), of_factory, head, scratch, options), Status::kOk);
  return head;
}
void expect_same_head(const auto& a, const auto& b) {
  EXPECT_TRUE(check::same_bits(a.weight, b.weight) && check::same_bits(a.bias, b.bias));
}

}  // namespace

TEST(ClosedFormTrainer, starts_as_the_base_and_learns_the_head_of_all_examples) {
  begin(trainer);
  expect_same_head(trainer.parameters().layer<2>(), base.layer<2>());
  add(trainer, 0, kExamples);
  expect_same_head(trainer.parameters().layer<2>(), base.layer<2>());  // until the update
  EXPECT_TRUE(trainer.update({.ridge = 2}).ok());
  static const Sums none;
  const Head::Parameters expected = by_hand(base, none, {.ridge = 2});
  expect_same_head(trainer.parameters().layer<2>(), expected);

  Model::InferenceScratch scratch;
  Model::Output y, learned;
  static Model::Parameters whole;
  whole = base;
  whole.layer<2>() = expected;
  int right = 0;
  for (int i = 0; i < kExamples; ++i) {
    EXPECT_EQ(trainer.predict(example(i), learned), Status::kOk);
    infer<Model>(whole, example(i), y, scratch);
    EXPECT_TRUE(check::same_bits(y, learned));
    int best = 0;
    for (int c = 1; c < kClasses; ++c) best = learned(0, c) > learned(0, best) ? c : best;
    right += best == label(i)[0];
  }
  EXPECT_GT(right, kExamples / 2);
}

TEST(ClosedFormTrainer, learns_the_same_by_one_update_and_by_one_after_each_example) {
  begin(trainer);
  add(trainer, 0, kExamples);
  EXPECT_TRUE(trainer.update({.ridge = 1}).ok());
  begin(other);
  for (int i = 0; i < kExamples; ++i) {
    add(other, i, i + 1);
    EXPECT_TRUE(other.update_incomplete({.ridge = 1}).ok());
  }
  expect_same_head(trainer.parameters().layer<2>(), other.parameters().layer<2>());
  EXPECT_EQ(other.state().steps, std::uint64_t{kExamples});
}

TEST(ClosedFormTrainer, remembers_outputs_on_factory_examples) {
  begin(trainer);
  add(trainer, 0, kExamples);
  factory.clear();
  Sums::Features features;
  for (int i = 0; i < 2 * kExamples; ++i) {
    Rng rng(static_cast<std::uint64_t>(i) + 100);
    check::fill(features, rng);
    EXPECT_EQ(factory.add(features, 0), Status::kOk);
  }
  EXPECT_TRUE(trainer.update({.ridge = 1, .rehearsal = 2}, factory).ok());
  expect_same_head(trainer.parameters().layer<2>(), by_hand(base, factory, {.ridge = 1, .rehearsal = 2}));
}

TEST(ClosedFormTrainer, starts_from_quantized_constants) {
  Rng rng(1);
  check::fill_set(base, rng);
  EXPECT_EQ(quantize(base, quantized), Status::kOk);
  static TrainerOf<Model, quantized> of_int8;
  of_int8.initialize(XavierUniform{}, Rng{1});
  add(of_int8, 0, kExamples);
  EXPECT_TRUE(of_int8.update({.ridge = 2}).ok());
  static const Sums none;
  expect_same_head(of_int8.parameters().layer<2>(), by_hand(quantized, none, {.ridge = 2}));
}

TEST(ClosedFormTrainer, resumes_with_its_examples) {
  begin(trainer);
  add(trainer, 0, 5);
  EXPECT_TRUE(trainer.update().ok());
  static const Device::State saved = trainer.state();
  other = {};
  EXPECT_EQ(other.resume(saved), Status::kOk);
  add(trainer, 5, kExamples);
  add(other, 5, kExamples);
  EXPECT_TRUE(trainer.update().ok() && other.update().ok());
  EXPECT_EQ(hash_bits(trainer.state()), hash_bits(other.state()));
  EXPECT_EQ(other.state().moments.sums.examples(), kExamples);
  base.layer<0>().weight(0, 0) += 1;
  EXPECT_EQ(other.resume(saved), Status::kOtherBase);
}

TEST(ClosedFormTrainer, invalid_examples_and_options_change_nothing) {
  other = {};
  Model::Output y;
  EXPECT_EQ(other.accumulate(example(0), label(0)).status, Status::kNotInitialized);
  EXPECT_EQ(other.update().status, Status::kNotInitialized);
  EXPECT_EQ(other.predict(example(0), y), Status::kNotInitialized);
  begin(trainer);
  EXPECT_EQ(trainer.update().status, Status::kNoTargets);
  add(trainer, 0, kExamples);
  const auto before = hash_bits(trainer.state());
  for (const int invalid : {-1, kClasses}) {
    EXPECT_EQ(trainer.accumulate(example(0), std::array<int, 1>{invalid}).status, Status::kInvalidTarget);
  }
  Model::Input x = example(0);
  x(1, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(trainer.accumulate(x, label(0)).status, Status::kNotFinite);
  EXPECT_EQ(trainer.update({.ridge = -1}).status, Status::kInvalidWeightDecay);
  EXPECT_EQ(trainer.update({.scale = 0}).status, Status::kInvalidWeightDecay);
  EXPECT_EQ(hash_bits(trainer.state()), before);
}

TEST(ClosedFormTrainer, of_ids_refuses_invalid_tokens) {
  using Tokens = Embedding<EmbeddingShape{.seq_len = kTokens, .vocabulary = 5, .d_model = kWidth}>;
  using OfIds = Sequential<Tokens, Mean, Head>;
  static OfIds::Parameters of_ids;
  static TrainerOf<OfIds, of_ids> device;
  device.initialize(XavierUniform{}, Rng{1});
  EXPECT_TRUE(device.accumulate(std::array<int, kTokens>{0, 4, 2}, label(0)).ok());
  EXPECT_EQ(device.accumulate(std::array<int, kTokens>{0, 5, 2}, label(0)).status, Status::kInvalidToken);
  EXPECT_EQ(device.state().moments.sums.examples(), 1);
}

TEST(ClosedFormTrainer, has_the_memory_that_it_reports) {
  constexpr MemoryReport kMemory = Device::memory();
  static_assert(kMemory.object() == sizeof(Device) && kMemory.moments == sizeof(Sums));
  static_assert(kMemory.parameters == sizeof(float) * (kWidth + 1) * kClasses);
  static_assert(kMemory.gradients == 0 && kMemory.tape == 0);
  static_assert(kMemory.inputs == sizeof(Model::Input) + sizeof(int));
}
