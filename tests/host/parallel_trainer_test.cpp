#include <attune/host/parallel_trainer.hpp>

#include <limits>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>

#include "training/batch_data.hpp"

namespace {

using attune::Status;
using attune::host::ParallelTrainer;

constexpr int kThreadCounts[] = {1, 2, 3, 5};

constexpr attune::AttentionShape kShape{.seq_len = 6, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Classifier = attune::Sequential<
    attune::Linear<attune::LinearShape{6, 5, 8}>,
    attune::Repeat<2, attune::EncoderLayer<attune::EncoderLayerShape{
                          .attention = {.seq_len = 6, .d_model = 8, .num_heads = 2}, .d_ff = 20}>>,
    attune::Pooling<attune::PoolingShape{6, 8}>, attune::Linear<attune::LinearShape{1, 8, 5}>>;
constexpr attune::EncoderLayerShape kDroppingShape{
    .attention = {.seq_len = 6, .d_model = 8, .num_heads = 2, .dropout = 0.25},
    .d_ff = 12,
    .norm = attune::NormPlacement::kBefore};
using Dropping = attune::Sequential<
    attune::Linear<attune::LinearShape{6, 5, 8}>,
    attune::Residual<attune::Dropout<attune::DropoutShape{.rows = 6, .d_model = 8, .probability = 0.5}>>,
    attune::Repeat<2, attune::Residual<attune::EncoderLayer<kDroppingShape>>>,
    attune::Pooling<attune::PoolingShape{6, 8}>, attune::Linear<attune::LinearShape{1, 8, 5}>>;
using OfTokens =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 6, .vocabulary = 5, .d_model = 8}>,
                       attune::LearnedPositions<attune::PositionShape{.seq_len = 6, .d_model = 8}>,
                       attune::Repeat<2, attune::EncoderLayer<kDroppingShape>>,
                       attune::Pooling<attune::PoolingShape{6, 8}>,
                       attune::Linear<attune::LinearShape{1, 8, 5}>>;
constexpr int kBatch = 13;

template <class Model, class Loss = attune::MeanSquaredError, class Optimizer = attune::AdamW,
          class Plan = attune::BySequence>
using PerSequence = attune::Trainer<Model, Loss, Optimizer, kBatch, Plan>;
template <class Model, class Loss = attune::MeanSquaredError, class Optimizer = attune::AdamW,
          class Plan = attune::BySequence>
using Parallel = ParallelTrainer<Model, Loss, Optimizer, kBatch, Plan>;

// Sums of at least 16 terms, in attention too, are sums of integers.
constexpr attune::EncoderLayerShape kLongShape{
    .attention = {.seq_len = 18, .d_model = 16, .num_heads = 1, .dropout = 0.25}, .d_ff = 20};
using Long = attune::Sequential<
    attune::Linear<attune::LinearShape{18, 5, 16}>, attune::Repeat<2, attune::EncoderLayer<kLongShape>>,
    attune::Pooling<attune::PoolingShape{18, 16}>, attune::Linear<attune::LinearShape{1, 16, 5}>>;
using LongParallel = Parallel<Long, attune::CrossEntropy<>, attune::AdamW, attune::Int8Training>;

}  // namespace

TEST(ParallelTrainer, predicts_in_the_integers_that_it_trains_in) {
  static PerSequence<Long, attune::CrossEntropy<>, attune::AdamW, attune::Int8Training> one;
  static PerSequence<Long, attune::CrossEntropy<>> of_floats;
  LongParallel parallel({.threads = 2});
  one.initialize(attune::XavierUniform{}, attune::Rng{7});
  EXPECT_EQ(parallel.resume(one.state()), Status::kOk);
  Long::Input x;
  attune::Rng rng(2);
  check::fill(x, rng);
  Long::Output y, expected;
  EXPECT_EQ(one.predict(x, expected), Status::kOk);
  EXPECT_EQ(parallel.predict(x, y), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));
  of_floats.load(one.parameters());
  EXPECT_EQ(of_floats.predict(x, y), Status::kOk);
  EXPECT_FALSE(check::same_bits(y, expected));
  EXPECT_EQ(parallel.memory().parameters, decltype(one)::memory().parameters);

  // Parameters that are not finite have no integers.
  static Long::Parameters parameters = one.parameters();
  parameters.layer<0>().weight(0, 0) = std::numeric_limits<float>::infinity();
  parallel.load(parameters);
  static const check::Batch<LongParallel> data(1);
  EXPECT_EQ(parallel.step(data.x, data.target, {}).status, Status::kNotFinite);
  EXPECT_EQ(parallel.predict(x, y), Status::kNotFinite);
  EXPECT_TRUE(check::same_bits(parallel.parameters(), parameters));
}

namespace {

// What was refused has changed neither parameters nor moments nor masks of dropout: training goes on as if it
// had not been.
template <class Model, class Refused>
void expect_harmless_to(Status expected_status, const Refused& refused) {
  using Trainer = Parallel<Model, attune::CrossEntropy<>>;
  for (const int threads : kThreadCounts) {
    Trainer trainer({.threads = threads, .gradient_bytes = 0}), untouched({.threads = threads});
    trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
    untouched.initialize(attune::XavierUniform{}, attune::Rng{42});
    check::Batch<Trainer> data(1);
    EXPECT_TRUE(trainer.step(data.x, data.target, {}).ok());
    EXPECT_TRUE(untouched.step(data.x, data.target, {}).ok());
    check::Batch<Trainer> wrong(2);
    EXPECT_EQ(refused(trainer, wrong), expected_status);
    EXPECT_TRUE(check::same_bits(trainer.parameters(), untouched.parameters()));
    EXPECT_TRUE(trainer.step(data.x, data.target, {}).ok());
    EXPECT_TRUE(untouched.step(data.x, data.target, {}).ok());
    EXPECT_TRUE(check::same_bits(trainer.parameters(), untouched.parameters()));
  }
}
template <class Refused>
void expect_harmless(Status expected_status, const Refused& refused) {
  expect_harmless_to<Classifier>(expected_status, refused);
  expect_harmless_to<Dropping>(expected_status, refused);
}

}  // namespace

TEST(ParallelTrainer, an_invalid_target_refuses_the_batch) {
  for (const std::size_t where : {std::size_t{0}, std::size_t{5}, std::size_t{kBatch - 1}}) {
    expect_harmless(Status::kInvalidTarget, [where](auto& trainer, auto& data) {
      data.target[where] = 5;
      return trainer.step(data.x, data.target, {}).status;
    });
  }
}

TEST(ParallelTrainer, an_id_outside_the_vocabulary_refuses_the_batch) {
  for (const std::size_t where : {std::size_t{0}, std::size_t{5 * 6 + 3}, std::size_t{kBatch * 6 - 1}}) {
    expect_harmless_to<OfTokens>(Status::kInvalidToken, [where](auto& trainer, auto& data) {
      data.x[where] = 5;
      data.target[kBatch - 1] =
          7;  // of the last sequence: the first one refused tells why, ids before targets
      const Status status = trainer.step(data.x, data.target, {}).status;
      attune::Tensor<float, kBatch, 5> outputs{};
      EXPECT_EQ(trainer.predict_batch(data.x, outputs), Status::kInvalidToken);
      const int refused = static_cast<int>(where / 6);
      for (int row = 0; row < kBatch; ++row) EXPECT_EQ(outputs(row, 0) == 0.0f, row == refused);
      data.x[where] = 2;
      EXPECT_EQ(trainer.predict_batch(data.x, outputs), Status::kOk);
      return status;
    });
  }
}

TEST(ParallelTrainer, nan_and_infinity_discard_the_batch) {
  for (const int where : {0, 7 * 30 + 4, kBatch * 30 - 1}) {
    expect_harmless(Status::kNotFinite, [where](auto& trainer, auto& data) {
      data.x.values[where] = check::kNan<float>;
      return trainer.step(data.x, data.target, {}).status;
    });
  }
}

TEST(ParallelTrainer, refuses_the_options_that_a_trainer_refuses) {
  expect_harmless(Status::kInvalidLearningRate, [](auto& trainer, auto& data) {
    return trainer.step(data.x, data.target, {.learning_rate = -1.0f}).status;
  });
  expect_harmless(Status::kInvalidMaxNorm, [](auto& trainer, auto& data) {
    return trainer.step(data.x, data.target, {}, attune::GradientClipping{check::kNan<float>}).status;
  });
}

TEST(ParallelTrainer, predicts_fewer_sequences_than_threads_on_all_of_them) {
  using Wide =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 24, .d_model = 48, .num_heads = 2}>;
  static attune::Trainer<Wide, attune::MeanSquaredError, attune::AdamW, 2> expected;
  expected.initialize(attune::XavierUniform{}, attune::Rng{42});
  static attune::Tensor<float, 48, 48> x, outputs;
  static Wide::Output one;
  attune::Rng rng(1);
  check::fill(x, rng);
  for (const int threads : kThreadCounts) {
    ParallelTrainer<Wide, attune::MeanSquaredError, attune::AdamW, 2> trainer({.threads = threads});
    trainer.load(expected.parameters());
    EXPECT_EQ(trainer.predict_batch(x, outputs), Status::kOk);
    for (int sequence = 0; sequence < 2; ++sequence) {
      EXPECT_EQ(expected.predict(attune::view(x).rows_at<24>(24 * sequence), one), Status::kOk);
      EXPECT_EQ(std::memcmp(one.data(), &outputs(24 * sequence, 0), sizeof one), 0);
    }
    EXPECT_EQ(trainer.predict(attune::view(x).rows_at<24>(24), one), Status::kOk);
    EXPECT_EQ(std::memcmp(one.data(), &outputs(24, 0), sizeof one), 0);
    EXPECT_TRUE(check::same_bits(trainer.tape().weights, expected.tape().weights));
  }
}

TEST(ParallelTrainer, predicts_without_dropout_and_loads_where_masks_start) {
  using Trainer = Parallel<Dropping, attune::CrossEntropy<>>;
  Trainer trainer({.threads = 3});
  static PerSequence<Dropping, attune::CrossEntropy<>> expected;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  expected.load(trainer.parameters(), attune::Rng{2});
  trainer.load(expected.parameters(), attune::Rng{2});
  const check::Batch<Trainer> data(12);
  EXPECT_EQ(trainer.step(data.x, data.target, {}).loss, expected.step(data.x, data.target, {}).loss);
  static attune::Tensor<float, kBatch, 5> outputs;
  EXPECT_EQ(trainer.predict_batch(data.x, outputs), Status::kOk);
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    Dropping::Output one, inferred;
    static Dropping::InferenceScratch scratch;
    const auto x = attune::view(data.x).rows_at<6>(sequence * 6);
    EXPECT_EQ(trainer.predict(x, one), Status::kOk);
    Dropping::forward(trainer.parameters(), x, inferred, scratch);
    EXPECT_TRUE(check::same_bits(one, inferred));
    EXPECT_EQ(std::memcmp(&outputs(sequence, 0), &inferred, sizeof inferred), 0);
  }
}

TEST(ParallelTrainer, memory_grows_with_threads_and_slots) {
  using Trainer = Parallel<Layer>;
  const attune::MemoryReport one = Trainer({.threads = 1, .gradient_bytes = 0}).memory();
  const attune::MemoryReport three = Trainer({.threads = 3, .gradient_bytes = 0}).memory();
  const attune::MemoryReport device = Trainer::PerSequence::memory();
  EXPECT_EQ(one.parameters, device.parameters);
  EXPECT_EQ(one.gradients, 2 * device.gradients);
  EXPECT_EQ(three.gradients, 4 * device.gradients);
  EXPECT_EQ(one.tape, device.tape);
  EXPECT_EQ(three.tape, 3 * device.tape);
  EXPECT_EQ(three.scratch, 3 * device.scratch);
  EXPECT_EQ(three.inputs, device.inputs);
  EXPECT_EQ(Trainer({.threads = 1}).memory().gradients, (1 + kBatch) * device.gradients);
  using Large = Parallel<attune::Linear<attune::LinearShape{1, 512, 256}>>;  // no two fit 512 KiB
  EXPECT_EQ(Large({.threads = 1}).memory().gradients, 3 * Large::PerSequence::memory().gradients);
}

TEST(ParallelTrainer, weighs_classes_and_ignores_targets_over_the_batch) {
  using Head = attune::Linear<attune::LinearShape{2, 5, 5}>;
  using Loss = attune::WeightedCrossEntropy<5, attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
  constexpr Loss kLoss{{{0.5f, 3, 1, 2, 1}}};
  using Expected = PerSequence<Head, Loss>;
  static Expected expected;
  expected.initialize(attune::XavierUniform{}, attune::Rng{1});
  check::Batch<Expected> data(2);
  for (std::size_t i = 0; i < data.target.size(); i += 3) data.target[i] = -100;
  const auto one =
      expected.step(data.x, data.target, {}, attune::GradientClipping{0.1f}, attune::NoMask{}, kLoss);
  ASSERT_TRUE(one.ok());
  for (const int threads : kThreadCounts) {
    Parallel<Head, Loss> parallel({.threads = threads});
    parallel.initialize(attune::XavierUniform{}, attune::Rng{1});
    const auto together =
        parallel.step(data.x, data.target, {}, attune::GradientClipping{0.1f}, attune::NoMask{}, kLoss);
    EXPECT_TRUE(together.ok());
    EXPECT_EQ(together.loss, one.loss);
    EXPECT_EQ(together.gradient_norm, one.gradient_norm);
    EXPECT_TRUE(check::same_bits(parallel.parameters(), expected.parameters()));
    auto ignored = data.target;
    ignored.fill(-100);
    const auto refused = parallel.step(data.x, ignored, {}, attune::NoClipping{}, attune::NoMask{}, kLoss);
    EXPECT_EQ(refused.status, Status::kNoTargets);
    EXPECT_TRUE(check::is_nan(refused.loss));
    EXPECT_TRUE(check::same_bits(parallel.parameters(), expected.parameters()));
  }
}

TEST(ParallelTrainer, predicts_a_batch_with_a_mask_for_every_sequence) {
  Parallel<Layer> trainer({.threads = 2});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  const check::Batch<PerSequence<Layer>> data(3);
  std::array<attune::KeyPaddingMask<6>, kBatch> masks;
  for (int i = 0; i < kBatch; ++i)
    ASSERT_EQ(masks[static_cast<std::size_t>(i)].set_length(1 + i % 6), Status::kOk);
  attune::Tensor<float, kBatch * 6, 8> outputs;
  EXPECT_EQ(trainer.predict_batch(data.x, outputs, masks), Status::kOk);
  Layer::Output one;
  for (int i = 0; i < kBatch; ++i) {
    const auto& mask = masks[static_cast<std::size_t>(i)];
    EXPECT_EQ(trainer.predict(attune::view(data.x).rows_at<6>(i * 6), one, mask), Status::kOk);
    EXPECT_EQ(std::memcmp(one.data(), &outputs(i * 6, 0), sizeof one), 0);
  }
}

TEST(ParallelTrainer, trains_const_types_as_those_without_const) {
  constexpr attune::WeightedCrossEntropy<3> kLoss{{{1, 2, 1}}};
  using Model = attune::Linear<attune::LinearShape{1, 4, 3}>;
  ParallelTrainer<const Model, decltype(kLoss), const attune::AdamW, kBatch, const attune::BySequence>
      of_const({.threads = 2});
  ParallelTrainer<Model, attune::WeightedCrossEntropy<3>, attune::AdamW, kBatch> plain({.threads = 2});
  of_const.initialize(attune::XavierUniform{}, attune::Rng{1});
  plain.initialize(attune::XavierUniform{}, attune::Rng{1});
  attune::Tensor<float, kBatch, 4> x;
  attune::Rng rng(1);
  check::fill(x, rng);
  const std::array<int, kBatch> target{1, 2};
  EXPECT_TRUE(of_const.step(x, target, {}, attune::NoClipping{}, attune::NoMask{}, kLoss).ok());
  EXPECT_TRUE(plain.step(x, target, {}, attune::NoClipping{}, attune::NoMask{}, kLoss).ok());
  EXPECT_TRUE(check::same_bits(of_const.parameters(), plain.parameters()));
}

TEST(ParallelTrainer, refuses_predictions_that_are_not_finite) {
  using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
  using Trainer = attune::host::ParallelTrainer<Model, attune::MeanSquaredError, attune::AdamW, 3>;
  Trainer trainer({.threads = 2});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  Trainer::BatchInput x{};
  attune::Tensor<float, 6, 2> y;
  EXPECT_EQ(trainer.predict_batch(x, y), attune::Status::kOk);
  x(3, 1) = check::kNan<float>;
  EXPECT_EQ(trainer.predict_batch(x, y), attune::Status::kNotFinite);
  EXPECT_EQ(y(0, 0), y(0, 0));  // other sequences have their output
  Model::Input one{};
  Model::Output output;
  EXPECT_EQ(trainer.predict(one, output), attune::Status::kOk);
  one(0, 0) = check::kInfinity<float>;
  EXPECT_EQ(trainer.predict(one, output), attune::Status::kNotFinite);
}
