#include <attune/training/crew_trainer.hpp>

#include <cstring>

#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>

#include "training/batch_data.hpp"

namespace {

using attune::Status;

constexpr int kBatch = 3;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{2, 3, 4}>,
                                 attune::Dropout<attune::DropoutShape{2, 4, 0.25}>,
                                 attune::Linear<attune::LinearShape{2, 4, 2}>>;
using Loss = attune::MeanSquaredError;
using Trainer = attune::Trainer<Model, Loss, attune::AdamW, kBatch>;
using Alone = attune::CrewTrainer<attune::OneCore, Model, Loss, attune::AdamW, kBatch>;
static_assert(Alone::memory().object() == sizeof(Alone));
static_assert(Alone::memory().tape == Trainer::memory().tape);

attune::OneCore core;
Trainer expected;
Alone alone;

}  // namespace

TEST(CrewTrainer, one_core_has_the_state_of_a_trainer) {
  expected.initialize(attune::XavierUniform{}, attune::Rng{3});
  EXPECT_EQ(alone.step(core, Alone::BatchInput{}, Alone::BatchTarget{}).status, Status::kNotInitialized);
  alone.initialize(attune::XavierUniform{}, attune::Rng{3});
  constexpr attune::AdamW::Options kOptions{.learning_rate = 0.1f};
  for (std::uint64_t step = 0; step < 3; ++step) {
    const check::Batch<Trainer> data(step);
    const auto one = expected.step(data.x, data.target, kOptions, attune::GradientClipping{0.1f});
    const auto crew = alone.step(core, data.x, data.target, kOptions, attune::GradientClipping{0.1f});
    EXPECT_TRUE(one.ok() && crew.ok());
    EXPECT_TRUE(check::same_bits(one.loss, crew.loss));
    EXPECT_TRUE(check::same_bits(one.gradient_norm, crew.gradient_norm));
    EXPECT_EQ(std::memcmp(&alone.state(), &expected.state(), sizeof expected.state()), 0);
  }
  check::Batch<Trainer> data(9);
  Model::Output y, wanted;
  attune::Tensor<float, kBatch * 2, 2> outputs;
  EXPECT_EQ(alone.predict_batch(core, data.x, outputs), Status::kOk);
  EXPECT_EQ(alone.predict(core, attune::view(data.x).rows_at<2>(2), y), Status::kOk);
  EXPECT_EQ(expected.predict(attune::view(data.x).rows_at<2>(2), wanted), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, wanted));
  EXPECT_EQ(std::memcmp(&outputs.values[4], &wanted, sizeof wanted), 0);
}

TEST(CrewTrainer, a_refused_batch_moves_no_mask_of_dropout) {
  using Drops = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 2, .d_model = 4, .num_heads = 2, .dropout = 0.25}, .d_ff = 5}>;
  using One = attune::Trainer<Drops, Loss, attune::AdamW, kBatch>;
  static One one;
  static attune::CrewTrainer<attune::OneCore, Drops, Loss, attune::AdamW, kBatch> crew;
  one.initialize(attune::XavierUniform{}, attune::Rng{3});
  crew.initialize(attune::XavierUniform{}, attune::Rng{3});
  for (int step = 0; step < 6; ++step) {
    check::Batch<One> data(static_cast<std::uint64_t>(step));
    if (step % 2 == 1) data.x(step / 2 * 2, 0) = check::kNan<float>;  // of one sequence
    const Status status = one.step(data.x, data.target).status;
    EXPECT_EQ(status, step % 2 == 1 ? Status::kNotFinite : Status::kOk);
    EXPECT_EQ(crew.step(core, data.x, data.target).status, status);
    EXPECT_EQ(std::memcmp(&crew.state(), &one.state(), sizeof one.state()), 0);
  }
}
