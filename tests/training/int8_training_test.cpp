// Training in integers: to the same bits on all targets, about as well as in floats, with everything that a
// trainer does.
#include <attune/training/int8_training.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <attune/attention/mask.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 20, kWidth = 16, kClasses = 4, kBatch = 4;
template <bool kKeepWeights>
constexpr EncoderLayerShape kEncoder{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 1, .keep_weights = kKeepWeights},
    .d_ff = 24};
template <bool kKeepWeights = true>
using ModelOf = Sequential<EncoderLayer<kEncoder<kKeepWeights>>, Pooling<PoolingShape{kTokens, kWidth}>,
                           Linear<LinearShape{1, kWidth, kClasses}>>;
using Model = ModelOf<>;
template <class OfModel = Model, class Plan = Int8Training>
using TrainerOf = Trainer<OfModel, CrossEntropy<>, AdamW, kBatch, Plan>;
constexpr AdamW::Options kOptions{.learning_rate = 5e-3f};

struct Example {
  typename Model::Input x;
  std::array<int, 1> label;

  // A class is which quarter of the features is large.
  explicit Example(Rng& rng) {
    label[0] = static_cast<int>(rng.uniform(0.0f, 3.999f));
    for (int i = 0; i < x.size; ++i) {
      x.values[i] = rng.uniform(-1.0f, 1.0f) + (i % kWidth / 4 == label[0] ? 0.5f : 0.0f);
    }
  }
};

// A trainer with a parameter that is not finite; returns their hash.
std::uint32_t load_infinity(auto& trainer) {
  static Model::Parameters parameters;
  parameters = trainer.parameters();
  parameters.layer<2>().weight(0, 0) = std::numeric_limits<float>::infinity();
  trainer.load(parameters);
  return hash_bits(parameters);
}

template <class SomeTrainer, class... Mask>
float train(SomeTrainer& trainer, int steps, const Mask&... mask) {
  Rng rng(3);
  float loss = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      Example example(rng);
      EXPECT_TRUE(trainer.accumulate(example.x, example.label, mask...).ok());
    }
    const auto result = trainer.update(kOptions);
    EXPECT_TRUE(result.ok());
    loss = result.loss;
  }
  return loss;
}

}  // namespace

TEST(Int8Training, learns_as_floats_do) {
  auto& integers = check::fresh<0, TrainerOf<>>();
  auto& floats = check::fresh<1, TrainerOf<Model, BySequence>>();
  const float of_integers = train(integers, 60), of_floats = train(floats, 60);
  EXPECT_LT(of_floats, 0.7f);
  EXPECT_NEAR(of_integers, of_floats, 0.05f);
  EXPECT_NE(hash_bits(integers.parameters()), hash_bits(floats.parameters()));
}

TEST(Int8Training, recomputes_attention) {
  auto& recomputing = check::fresh<0, TrainerOf<ModelOf<false>>>();
  auto& keeping = check::fresh<1, TrainerOf<>>();
  EXPECT_NEAR(train(recomputing, 30), train(keeping, 30), 0.05f);
}

TEST(Int8Training, predicts_in_slices) {
  auto& trainer = check::fresh<0, TrainerOf<>>();
  Rng rng(3);
  const Example example(rng);
  Model::Output expected{}, logits{};
  EXPECT_EQ(trainer.predict(example.x, expected), Status::kOk);
  auto prediction = trainer.predict_in_slices<2048>(example.x, logits);
  while (prediction.advance()) {
  }
  EXPECT_EQ(prediction.status(), Status::kOk);
  EXPECT_TRUE(check::same_bits(logits, expected));  // of integers
}

TEST(Int8Training, predicts_with_the_parameters_as_they_are) {
  auto& trainer = check::fresh<0, TrainerOf<>>();
  auto& other = check::fresh<1, TrainerOf<>>();
  Rng rng(9);
  const Example example(rng);
  Model::Output before, after, resumed;
  EXPECT_EQ(trainer.predict(example.x, before), Status::kOk);
  train(trainer, 1);
  EXPECT_EQ(trainer.predict(example.x, after), Status::kOk);
  EXPECT_FALSE(check::same_bits(before, after));
  EXPECT_EQ(other.predict(example.x, resumed), Status::kOk);
  EXPECT_TRUE(check::same_bits(before, resumed));
  EXPECT_EQ(other.resume(trainer.state()), Status::kOk);
  EXPECT_EQ(other.predict(example.x, resumed), Status::kOk);
  EXPECT_TRUE(check::same_bits(after, resumed));

  // As inference of the same integers outside of a trainer.
  static Model::ParametersOf<PackedInt8Weights, Tensor> packed;
  static Model::InferenceScratch scratch;
  EXPECT_EQ(quantize(trainer.parameters(), packed), Status::kOk);
  infer<Model>(packed, example.x, resumed, scratch, NoMask{}, Int8Products{});
  EXPECT_TRUE(check::same_bits(after, resumed));
}

TEST(Int8Training, and_floats_refuse_the_states_of_each_other) {
  auto& integers = check::fresh<0, TrainerOf<>>();
  auto& floats = check::fresh<1, TrainerOf<Model, BySequence>>();
  using OfIntegers = std::remove_cvref_t<decltype(integers.state())>;
  using OfFloats = std::remove_cvref_t<decltype(floats.state())>;
  static_assert(OfIntegers::kFingerprint == OfFloats::kFingerprint);
  static_assert(sizeof(OfIntegers) == sizeof(OfFloats));
  const auto read = [](const auto& from) {
    return [&from](auto& to) {
      std::memcpy(static_cast<void*>(&to), &from, sizeof to);
      return Status::kOk;
    };
  };
  train(integers, 1);
  static OfIntegers state;
  state = integers.state();
  EXPECT_EQ(floats.resume(read(state)), Status::kOtherPrecision);
  floats.load(state.parameters, Rng{1});
  static OfFloats of_floats;
  of_floats = floats.state();
  EXPECT_EQ(integers.resume(read(of_floats)), Status::kOtherPrecision);
  EXPECT_EQ(integers.resume(read(state)), Status::kOk);
  state.fingerprint_of_numbers ^= 1;
  EXPECT_EQ(integers.resume(state), Status::kOtherArithmetic);
}

TEST(Int8Training, refuses_parameters_that_are_not_finite) {
  auto& trainer = check::fresh<0, TrainerOf<>>();
  load_infinity(trainer);
  Rng rng(9);
  const Example example(rng);
  Model::Output y;
  EXPECT_EQ(trainer.accumulate(example.x, example.label).status, Status::kNotFinite);
  EXPECT_EQ(trainer.predict(example.x, y), Status::kNotFinite);
  trainer.initialize(XavierUniform{}, Rng{1});
  EXPECT_EQ(trainer.predict(example.x, y), Status::kOk);
}

namespace {

Model::ParametersOf<PackedInt8Weights, Tensor> base;
using Lora = Adapted<Model, base, LowRank{.rank = 2}>;
using Biases = BiasesAndNorms<Model, base>;
SharedBuffers<Model> buffers;

template <class OfModel, class Plan = Int8Training>
void expect_learns() {
  auto& integers = check::fresh<0, TrainerOf<OfModel, Plan>>();
  auto& floats = check::fresh<1, TrainerOf<OfModel, BySequence>>();
  EXPECT_NEAR(train(integers, 20), train(floats, 20), 0.05f);
}

}  // namespace

TEST(Int8Training, trains_parts_of_a_model_and_shares_buffers) {
  static Model::Parameters parameters;
  Rng rng(6);
  initialize(parameters, XavierUniform{}, rng);
  EXPECT_EQ(quantize(parameters, base), Status::kOk);
  expect_learns<Lora>();
  if constexpr (!check::kQuickBuild) {
    expect_learns<Biases>();
  } else {
    check::leave_case();
  }
  expect_learns<Model, InSharedBuffers<buffers, Int8Training>>();
}

namespace {

using WithoutGradients = Int8TrainingWith<UpdateInBackward>;

}  // namespace

TEST(Int8Training, updates_in_backward_with_eight_rows_of_gradient) {
  using Network = FeedForward<FeedForwardShape{.rows = 17, .d_model = 16, .d_ff = 18}>;
  using InBackward = Trainer<Network, MeanSquaredError, AdamW, 1, WithoutGradients>;
  static_assert(InBackward::memory().gradients == sizeof(float) * 8 * 18);  // of W₁
}

TEST(Int8Training, updates_in_backward_refuse_parameters_that_are_not_finite) {
  auto& trainer = check::fresh<0, Trainer<Model, CrossEntropy<>, AdamW, 1, WithoutGradients>>();
  const std::uint32_t loaded = load_infinity(trainer);
  Rng rng(9);
  const Example example(rng);
  EXPECT_EQ(trainer.step(example.x, example.label, kOptions).status, Status::kNotFinite);
  EXPECT_EQ(hash_bits(trainer.parameters()), loaded);
}

TEST(Int8Training, reports_the_ram_of_its_integers) {
  constexpr MemoryReport kInt8 = TrainerOf<>::memory(), kFloat = TrainerOf<Model, BySequence>::memory();
  EXPECT_GT(kInt8.parameters, kFloat.parameters + sizeof(Model::Parameters) / 4);
  EXPECT_LT(kInt8.parameters, kFloat.parameters + sizeof(Model::Parameters) / 2);
  EXPECT_EQ(kInt8.gradients + kInt8.moments + kInt8.tape + kInt8.scratch,
            kFloat.gradients + kFloat.moments + kFloat.tape + kFloat.scratch);
}
