// Training without backward: it learns, to the same bits on all targets, and is replayed from a number a
// step.
#include <attune/training/forward_only.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <attune/attention/mask.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 5, kWidth = 8, kClasses = 3, kBatch = 4;
using Body = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, .d_ff = 8}>;
using Head = Sequential<Pooling<PoolingShape{kTokens, kWidth}>, Linear<LinearShape{1, kWidth, kClasses}>>;
using Model = Sequential<Body, Head>;
using Device = ForwardOnlyTrainer<Model, CrossEntropy<>, kBatch>;

struct Example {
  typename Model::Input x;
  std::array<int, 1> label;

  explicit Example(Rng& rng) {
    label[0] = static_cast<int>(rng.uniform(0.0f, 2.999f));
    for (int i = 0; i < x.size; ++i) {
      x.values[i] = rng.uniform(-0.5f, 0.5f) + (i % kWidth == label[0] ? 1.0f : 0.0f);
    }
  }
};

template <class SomeTrainer>
void begin(SomeTrainer& trainer) {
  trainer.initialize(XavierUniform{}, Rng{5});
}
template <class SomeTrainer, class EachChange>
float train(SomeTrainer& trainer, int steps, const EachChange& each_change) {
  Rng rng(3);
  float loss = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      const Example example(rng);
      EXPECT_TRUE(trainer.accumulate(example.x, example.label).ok());
    }
    const auto result = trainer.update({.learning_rate = 3e-3f});
    EXPECT_TRUE(result.ok());
    each_change(result.change);
    loss += (result.loss - loss) * (step == 0 ? 1.0f : 0.05f);
  }
  return loss;
}
template <class SomeTrainer>
float train(SomeTrainer& trainer, int steps) {
  return train(trainer, steps, [](const auto&) {});
}

Device trainer, other;

}  // namespace

TEST(ForwardOnlyTrainer, learns) {
  begin(trainer);
  const float before = train(trainer, 1);
  EXPECT_LT(train(trainer, 400), before - 0.3f);
}

TEST(ForwardOnlyTrainer, has_the_same_bits_on_all_targets) {
  begin(trainer);
  train(trainer, 10);
  EXPECT_EQ(hash_bits(trainer.parameters()), check::by_policy(0xB826EF58u, 0xC23F8805u));
}

TEST(ForwardOnlyTrainer, finds_the_slope_of_the_loss) {
  // Of a product of one weight the slope is the derivative.
  using One = Linear<LinearShape{1, 1, 1, false}>;
  static ForwardOnlyTrainer<One, MeanSquaredError, 1, Perturbation{1e-2}> slope;
  One::Parameters parameters{};
  parameters.weight(0, 0) = 2;
  slope.load(parameters);
  One::Input x{};
  One::Output target{};
  x(0, 0) = 3;
  target(0, 0) = 5;
  EXPECT_NEAR(slope.accumulate(x, target).loss, 1.0f, 1e-2f);  // (2·3 − 5)²
  const auto result = slope.update({.learning_rate = 0.5f});
  EXPECT_TRUE(result.ok());
  EXPECT_NEAR(std::fabs(result.change.size), 0.5f * 6.0f, 1e-2f);  // 2·(2·3 − 5)·3
  EXPECT_NEAR(slope.parameters().weight(0, 0), 2 - 0.5f * 6.0f, 1e-2f);
}

TEST(ForwardOnlyTrainer, is_replayed_from_its_changes) {
  begin(trainer);
  begin(other);
  train(trainer, 20, [](const Device::Change& change) { EXPECT_EQ(other.replay(change), Status::kOk); });
  EXPECT_EQ(hash_bits(trainer.state()), hash_bits(other.state()));
  const auto before = hash_bits(other.parameters());
  EXPECT_EQ(other.replay({.step = 19, .size = 1}), Status::kOtherStep);  // once more
  EXPECT_EQ(other.replay({.step = 21, .size = 1}), Status::kOtherStep);  // one is missing
  EXPECT_EQ(other.replay({.step = 20, .size = std::numeric_limits<float>::quiet_NaN()}), Status::kNotFinite);
  EXPECT_EQ(hash_bits(other.parameters()), before);
  other = {};
  EXPECT_EQ(other.replay({.step = 0, .size = 1}), Status::kNotInitialized);
}

TEST(ForwardOnlyTrainer, resumes_from_its_state) {
  begin(trainer);
  train(trainer, 3);
  begin(other);
  EXPECT_EQ(other.resume(trainer.state()), Status::kOk);
  EXPECT_EQ(train(trainer, 3), train(other, 3));
  EXPECT_EQ(hash_bits(trainer.parameters()), hash_bits(other.parameters()));
}

TEST(ForwardOnlyTrainer, changes_nothing_when_it_refuses) {
  begin(trainer);
  const auto before = hash_bits(trainer.parameters());
  Rng rng(1);
  Example example(rng);
  const Example good = example;
  EXPECT_EQ(trainer.update({}).status, Status::kIncompleteBatch);
  EXPECT_EQ(trainer.update_incomplete({}).status, Status::kIncompleteBatch);
  const std::array<int, 1> none = {kClasses};
  EXPECT_EQ(trainer.accumulate(example.x, none).status, Status::kInvalidTarget);
  example.x(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(trainer.accumulate(example.x, example.label).status, Status::kNotFinite);
  for (int i = 0; i < kBatch; ++i) EXPECT_TRUE(trainer.accumulate(good.x, good.label).ok());
  EXPECT_EQ(trainer.accumulate(good.x, good.label).status, Status::kFullBatch);
  for (const float rate : {-1.0f, std::numeric_limits<float>::quiet_NaN(), 1e38f}) {
    EXPECT_EQ(trainer.update({.learning_rate = rate}).status, Status::kInvalidLearningRate);
  }
  EXPECT_EQ(hash_bits(trainer.parameters()), before);
  EXPECT_TRUE(trainer.update({}).ok());
  EXPECT_NE(hash_bits(trainer.parameters()), before);

  const std::array<int, 1> ignored = {-100};
  EXPECT_TRUE(trainer.accumulate(good.x, ignored).ok());
  EXPECT_EQ(trainer.update_incomplete({}).status, Status::kNoTargets);
  EXPECT_TRUE(trainer.accumulate(good.x, good.label).ok());
  trainer.discard();
  EXPECT_EQ(trainer.update_incomplete({}).status, Status::kIncompleteBatch);
  other = {};
  Model::Output y;
  EXPECT_EQ(other.accumulate(good.x, good.label).status, Status::kNotInitialized);
  EXPECT_EQ(other.predict(good.x, y), Status::kNotInitialized);
}

TEST(ForwardOnlyTrainer, reads_nothing_that_a_mask_hides) {
  begin(trainer);
  begin(other);
  KeyPaddingMask<kTokens> mask;
  EXPECT_EQ(mask.set_length(kTokens - 1), Status::kOk);
  Rng rng(1);
  Example example(rng);
  EXPECT_TRUE(trainer.accumulate(example.x, example.label, mask).ok());
  for (int j = 0; j < kWidth; ++j) example.x(kTokens - 1, j) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(other.accumulate(example.x, example.label, mask).ok());
  EXPECT_TRUE(trainer.update_incomplete({}).ok() && other.update_incomplete({}).ok());
  EXPECT_EQ(hash_bits(trainer.parameters()), hash_bits(other.parameters()));
}

namespace {

Body::ParametersOf<PackedInt8Weights, Tensor> base;
using Lora = Sequential<Adapted<Body, base, LowRank{.rank = 2}>, Head>;
using OfIds =
    Sequential<Embedding<EmbeddingShape{.seq_len = kTokens, .vocabulary = 7, .d_model = kWidth}>, Model>;

}  // namespace

TEST(ForwardOnlyTrainer, trains_factors_next_to_integers) {
  static Body::Parameters parameters;
  Rng rng(6);
  initialize(parameters, XavierUniform{}, rng);
  EXPECT_EQ(quantize(parameters, base), Status::kOk);
  static ForwardOnlyTrainer<Lora, CrossEntropy<>, kBatch> lora;
  begin(lora);
  const float before = train(lora, 1);
  EXPECT_LT(train(lora, 400), 0.75f * before);
}

TEST(ForwardOnlyTrainer, trains_models_of_ids) {
  static ForwardOnlyTrainer<OfIds, CrossEntropy<>> ids;
  begin(ids);
  std::array<int, kTokens> tokens = {0, 1, 2, 3, 6};
  const std::array<int, 1> label = {1};
  EXPECT_TRUE(ids.accumulate(tokens, label).ok());
  EXPECT_TRUE(ids.update({}).ok());
  tokens[2] = 7;
  EXPECT_EQ(ids.accumulate(tokens, label).status, Status::kInvalidToken);
}

TEST(ForwardOnlyTrainer, reports_its_ram) {
  constexpr MemoryReport kMemory = Device::memory();
  static_assert(kMemory.object() == sizeof(Device));
  EXPECT_EQ(kMemory.parameters, 2 * sizeof(Model::Parameters));
  EXPECT_EQ(kMemory.gradients + kMemory.moments + kMemory.tape, 0u);
}
