#include <attune/training/trainer.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::GradientClipping;
using attune::Status;
using check::kInfinity;
using check::kNan;

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Single = attune::Trainer<Layer>;
constexpr int kBatch = 3;
using Batched = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;

static_assert(std::is_trivially_copyable_v<Single>);
static_assert(Single::memory().object() == sizeof(Single) && Batched::memory().object() == sizeof(Batched));

using Data = check::BatchData<Batched, 4>;

template <class Trainer>
Trainer& initialized() {
  static Trainer trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  return trainer;
}

}  // namespace

TEST(Trainer, step_is_forward_loss_backward_and_adamw_by_hand) {
  Batched& trainer = initialized<Batched>();
  const Data data(1);
  static Layer::Parameters parameters, gradients;
  static attune::AdamW::Moments<Layer::Parameters> moments;
  static Layer::Tape tape;
  static Layer::Scratch scratch;
  static Layer::Output y, dy;
  parameters = trainer.parameters();
  moments.reset();
  for (int step = 0; step < 5; ++step) {
    const Batched::Result result = trainer.step(data.x, data.target, {.learning_rate = 0.01f});
    float loss = 0;
    attune::set_zero(gradients);
    for (int sequence = 0; sequence < kBatch; ++sequence) {
      Layer::forward(parameters, data.input(sequence), y, tape, scratch);
      loss += attune::MeanSquaredError::forward(y, data.target_of(sequence), dy);
      Layer::backward(parameters, data.input(sequence), tape, dy, attune::NoGradient{}, gradients, scratch);
    }
    constexpr float kScale = 1.0f / kBatch;
    EXPECT_EQ(attune::AdamW::step(parameters, gradients, moments, {.learning_rate = 0.01f}, kScale),
              Status::kOk);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.loss, loss * kScale);
    EXPECT_NEAR(result.gradient_norm, attune::gradient_norm<float>(gradients) / kBatch,
                16 * 0x1p-24f * result.gradient_norm);
    EXPECT_TRUE(check::same_bits(trainer.parameters(), parameters));
  }
}

TEST(Trainer, a_batch_begins_with_gradients_of_zero) {
  using Wide = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 33, .d_out = 65}>;  // > 1024 weights
  using Trainer = attune::Trainer<Wide>;
  static Trainer trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  static Trainer::BatchInput x;
  static Trainer::BatchTarget target;
  attune::Rng rng(3);
  check::fill(x, rng);
  check::fill(target, rng);
  static constexpr Wide::Parameters kZero{};
  EXPECT_TRUE(trainer.step(x, target).ok());
  EXPECT_TRUE(check::same_bits(trainer.gradients(), kZero));
  EXPECT_TRUE(trainer.accumulate(x, target).ok());
  EXPECT_FALSE(check::same_bits(trainer.gradients(), kZero));
  EXPECT_TRUE(trainer.update().ok());
  EXPECT_TRUE(check::same_bits(trainer.gradients(), kZero));
}

TEST(Trainer, step_discards_accumulated_gradients) {
  Batched& trainer = initialized<Batched>();
  const Data data(3);
  EXPECT_TRUE(trainer.step(data.x, data.target, {}).ok());
  const Layer::Parameters stepped = trainer.parameters();
  initialized<Batched>();
  EXPECT_TRUE(trainer.accumulate(data.input(1), data.target_of(1)).ok());
  EXPECT_TRUE(trainer.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(check::same_bits(trainer.parameters(), stepped));
}

TEST(Trainer, update_needs_a_full_batch) {
  Batched& trainer = initialized<Batched>();
  const Data data(6);
  const std::uint32_t before = attune::hash_bits(trainer.parameters());
  EXPECT_EQ(trainer.update({}).status, Status::kIncompleteBatch);
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    EXPECT_EQ(trainer.update({}).status, Status::kIncompleteBatch);
    EXPECT_TRUE(trainer.accumulate(data.input(sequence), data.target_of(sequence)).ok());
  }
  const Layer::Parameters gradients = trainer.gradients();
  EXPECT_EQ(trainer.accumulate(data.input(0), data.target_of(0)).status, Status::kFullBatch);
  EXPECT_TRUE(check::same_bits(trainer.gradients(), gradients));
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), before);
  EXPECT_EQ(trainer.update({}).status, Status::kOk);
  EXPECT_NE(attune::hash_bits(trainer.parameters()), before);
  EXPECT_EQ(trainer.update({}).status, Status::kIncompleteBatch);
}

namespace {

// After a refused step, training goes on as if it had not been tried: parameters and (hidden) moments did not
// change.
template <class Disturb>
void expect_harmless(Status status, const Disturb& disturb) {
  static Batched disturbed, calm;
  disturbed.initialize(attune::XavierUniform{}, attune::Rng{42});
  calm.initialize(attune::XavierUniform{}, attune::Rng{42});
  const Data good(7);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(disturbed.step(good.x, good.target, {}).ok());
    EXPECT_TRUE(calm.step(good.x, good.target, {}).ok());
  }
  const std::uint32_t before = attune::hash_bits(disturbed.parameters());
  EXPECT_EQ(disturb(disturbed), status);
  EXPECT_EQ(attune::hash_bits(disturbed.parameters()), before);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(disturbed.step(good.x, good.target, {}).ok());
    EXPECT_TRUE(calm.step(good.x, good.target, {}).ok());
  }
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}

}  // namespace

TEST(Trainer, data_that_is_not_finite_changes_nothing) {
  for (const float bad : {kNan<float>, kInfinity<float>, -kInfinity<float>}) {
    for (const int sequence : {0, kBatch - 1}) {
      expect_harmless(Status::kNotFinite, [&](Batched& trainer) {
        Data data(8);
        data.x(sequence * 4 + 1, 3) = bad;
        return trainer.step(data.x, data.target, {}).status;
      });
      expect_harmless(Status::kNotFinite, [&](Batched& trainer) {
        Data data(8);
        data.target(sequence * 4 + 1, 3) = bad;
        return trainer.step(data.x, data.target, {}).status;
      });
    }
  }
}

TEST(Trainer, a_loss_that_overflows_changes_nothing) {
  expect_harmless(Status::kNotFinite, [](Batched& trainer) {
    Data data(8);
    data.target(0, 0) = 3e38f;
    return trainer.step(data.x, data.target, {}).status;
  });
}

TEST(Trainer, a_gradient_that_overflows_under_a_finite_loss_changes_nothing) {
  using Linear = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
  static attune::Trainer<Linear, attune::SumSquaredError> trainer;
  trainer.load(Linear::Parameters{});
  const Linear::Input huge{{3e38f, 0, 0, 0, 0, 0}}, x{{1, 2, 3, 4, 5, 6}};
  const Linear::Output target{{10, 10, 10, 10}};
  EXPECT_EQ(trainer.accumulate(huge, target).loss, 400.0f);
  EXPECT_EQ(trainer.update({}).status, Status::kNotFinite);
  EXPECT_TRUE(std::memcmp(&trainer.parameters(), &trainer.gradients(), sizeof(Linear::Parameters)) ==
              0);  // zeros
  const auto first = trainer.step(x, target, {.learning_rate = 0.1f});
  EXPECT_TRUE(first.ok());
  EXPECT_LT(trainer.step(x, target, {.learning_rate = 0.1f}).loss, first.loss);
}

TEST(Trainer, refused_options_change_nothing) {
  const Data data(9);
  const auto refuses = [&data](Status status, const attune::AdamW::Options& options) {
    expect_harmless(status,
                    [&](Batched& trainer) { return trainer.step(data.x, data.target, options).status; });
  };
  refuses(Status::kInvalidLearningRate, {.learning_rate = kNan<float>});
  refuses(Status::kInvalidLearningRate, {.learning_rate = kInfinity<float>});
  refuses(Status::kInvalidLearningRate, {.learning_rate = -1.0f});
  refuses(Status::kInvalidBeta, {.beta2 = 1.0});
  refuses(Status::kInvalidEpsilon, {.epsilon = 0.0f});
  refuses(Status::kInvalidWeightDecay, {.weight_decay = kNan<float>});
  expect_harmless(Status::kInvalidMaxNorm, [&data](Batched& trainer) {
    return trainer.step(data.x, data.target, {}, GradientClipping{kNan<float>}).status;
  });
}

TEST(Trainer, refused_options_keep_an_accumulated_batch) {
  Batched& trainer = initialized<Batched>();
  const Data data(10);
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    EXPECT_TRUE(trainer.accumulate(data.input(sequence), data.target_of(sequence)).ok());
  }
  EXPECT_EQ(trainer.update({.learning_rate = kNan<float>}).status, Status::kInvalidLearningRate);
  EXPECT_EQ(trainer.update({}).status, Status::kOk);
}

TEST(Trainer, initialize_and_load_forget_training) {
  static Batched fresh, used;
  fresh.initialize(attune::XavierUniform{}, attune::Rng{1});
  used.initialize(attune::XavierUniform{}, attune::Rng{2});
  const Data data(11);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(used.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(used.accumulate(data.input(0), data.target_of(0)).ok());
  used.load(fresh.parameters());
  EXPECT_TRUE(std::memcmp(&used.parameters(), &fresh.parameters(), sizeof(Layer::Parameters)) == 0);
  EXPECT_TRUE(used.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(fresh.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(check::same_bits(used.parameters(), fresh.parameters()));
}

TEST(Trainer, load_that_is_refused_leaves_training_as_it_was) {
  static Batched disturbed, undisturbed;
  const Data data(11);
  for (Batched* trainer : {&disturbed, &undisturbed}) {
    trainer->initialize(attune::XavierUniform{}, attune::Rng{1});
    EXPECT_TRUE(trainer->step(data.x, data.target, {}).ok());
    EXPECT_TRUE(trainer->accumulate(data.input(0), data.target_of(0)).ok());
    if (trainer == &disturbed) {
      EXPECT_EQ(disturbed.load([](Layer::Parameters&) { return Status::kCutShort; }), Status::kCutShort);
    }
    for (int i = 1; i < kBatch; ++i) {
      EXPECT_TRUE(trainer->accumulate(data.input(i), data.target_of(i)).ok());
    }
    EXPECT_TRUE(trainer->update({}).ok());
  }
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), undisturbed.parameters()));
}

TEST(Trainer, predict_is_inference_with_the_trained_parameters) {
  Single& trainer = initialized<Single>();
  const Data data(12);
  EXPECT_TRUE(trainer.step(data.input(0), data.target_of(0), {}).ok());
  Layer::Output predicted, inferred;
  Layer::InferenceScratch scratch;
  EXPECT_EQ(trainer.predict(data.input(1), predicted, attune::CausalMask{}), attune::Status::kOk);
  attune::infer<Layer>(trainer.parameters(), data.input(1), inferred, scratch, attune::CausalMask{});
  EXPECT_TRUE(check::same_bits(predicted, inferred));
  EXPECT_EQ(trainer.tape().head_weights(1)(0, 3), 0.0f);
}
