// Trainers of a model with dropout: apart from trainer_test.cpp, so that each fits 128 KiB of RAM.
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::Status;
using check::kNan;

constexpr attune::EncoderLayerShape kShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.5}, .d_ff = 8};
using Model =
    attune::Sequential<attune::EncoderLayer<kShape>, attune::Repeat<2, attune::EncoderLayer<kShape>>>;
using Single = attune::Trainer<Model>;
using Batched = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 3>;

using Data = check::BatchData<Batched, 4>;

}  // namespace

TEST(TrainerDropout, drops_in_training_and_not_in_prediction) {
  static_assert(Single::memory().object() == sizeof(Single));
  static Single trainer, other;
  trainer.initialize(attune::LinearDefault{}, attune::Rng{1});
  other.initialize(attune::LinearDefault{}, attune::Rng{1});
  const Data data(3);
  const float loss = trainer.step(data.input(0), data.target_of(0), {.learning_rate = 0.0f}).loss;
  EXPECT_EQ(other.step(data.input(0), data.target_of(0), {.learning_rate = 0.0f}).loss, loss);
  // The same parameters with other masks.
  other.load(trainer.parameters(), attune::Rng{2});
  EXPECT_NE(other.step(data.input(0), data.target_of(0), {.learning_rate = 0.0f}).loss, loss);
  // Another mask at each step.
  EXPECT_NE(trainer.step(data.input(0), data.target_of(0), {.learning_rate = 0.0f}).loss, loss);

  Model::Output predicted, again, inferred;
  static Model::InferenceScratch scratch;
  EXPECT_EQ(trainer.predict(data.input(1), predicted), attune::Status::kOk);
  EXPECT_EQ(trainer.predict(data.input(1), again), attune::Status::kOk);
  Model::forward(trainer.parameters(), data.input(1), inferred, scratch);
  EXPECT_TRUE(check::same_bits(predicted, inferred));
  EXPECT_TRUE(check::same_bits(predicted, again));
}

TEST(TrainerDropout, a_refused_step_has_used_no_masks) {
  static Batched disturbed, calm;
  disturbed.initialize(attune::LinearDefault{}, attune::Rng{1});
  calm.initialize(attune::LinearDefault{}, attune::Rng{1});
  const Data data(3);
  Data bad(4);
  bad.x(5, 0) = kNan<float>;
  EXPECT_EQ(disturbed.step(bad.x, bad.target, {}).status, Status::kNotFinite);
  EXPECT_EQ(disturbed.step(data.x, data.target, {.learning_rate = -1.0f}).status,
            Status::kInvalidLearningRate);
  EXPECT_TRUE(disturbed.accumulate(data.input(1), data.target_of(1)).ok());
  disturbed.discard();
  EXPECT_TRUE(disturbed.accumulate(data.input(2), data.target_of(2)).ok());
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(disturbed.step(data.x, data.target, {}).loss, calm.step(data.x, data.target, {}).loss);
  }
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}
