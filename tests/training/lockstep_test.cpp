#include <attune/training/lockstep.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/huber.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

template <class Model, class Loss, int batch, class Plan>
using Trainer =
    attune::Trainer<Model, Loss, attune::Adam<attune::AdamVariant{}, typename Model::Scalar>, batch, Plan>;

// Three steps in lockstep and one by one: the same losses and the same parameters, bit for bit.
template <class Model, int batch, class Loss = attune::MeanSquaredError, class Mask = attune::NoMask>
void expect_same_training(const Mask& mask = {}) {
  using Lockstep = Trainer<Model, Loss, batch, attune::Lockstep>;
  using Streaming = Trainer<Model, Loss, batch, attune::Streaming>;
  static_assert(Lockstep::memory().object() == sizeof(Lockstep));
  static_assert(
      sizeof(Streaming) ==
      sizeof(
          attune::Trainer<Model, Loss, attune::Adam<attune::AdamVariant{}, typename Model::Scalar>, batch>));
  static Lockstep lockstep;
  static Streaming streaming;
  static typename Lockstep::BatchInput x;
  static typename Lockstep::BatchTarget target;
  lockstep.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  for (int step = 0; step < 3; ++step) {
    check::fill(x, rng);
    check::fill(target, rng);
    const auto together = lockstep.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    const auto one_by_one = streaming.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    EXPECT_TRUE(together.ok() && one_by_one.ok());
    EXPECT_EQ(together.loss, one_by_one.loss);
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
  }
}

template <attune::AttentionShape shape, class Scalar = float>
using Attention = attune::MultiHeadAttention<shape, Scalar>;

constexpr attune::AttentionShape kTiny{.seq_len = 8, .d_model = 4, .num_heads = 1};

}  // namespace

TEST(Lockstep, trains_as_one_by_one) {
  expect_same_training<Attention<kTiny>, 32>();
  if constexpr (check::kEveryCase) {
    expect_same_training<Attention<attune::AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 2}>, 16>();
  }
  expect_same_training<attune::Linear<attune::LinearShape{.rows = 3, .d_in = 7, .d_out = 2}>, 32>();
}

TEST(Lockstep, trains_models_of_layers_as_one_by_one) {
  constexpr attune::FeedForwardShape kNetwork{.rows = 4, .d_model = 4, .d_ff = 6};
  using Block =
      attune::Residual<Attention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>>;
  using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 3, 4}>, attune::Silu<4, 4>,
                                   attune::LearnedPositions<attune::PositionShape{4, 4}>,
                                   attune::Repeat<2, Block>, attune::FeedForward<kNetwork>,
                                   attune::SwiGlu<kNetwork>, attune::Pooling<attune::PoolingShape{4, 4}>,
                                   attune::Linear<attune::LinearShape{1, 4, 2}>>;
  expect_same_training<Model, 20>();
}

TEST(Lockstep, trains_norms_and_encoder_layers_as_one_by_one) {
  using First = attune::Linear<attune::LinearShape{4, 3, 6}>;
  if constexpr (check::kEveryCase) {
    expect_same_training<attune::Sequential<First, attune::LayerNorm<attune::NormShape{4, 6}>,
                                            attune::RmsNorm<attune::NormShape{4, 6}>>,
                         20>();
  }
  expect_same_training<attune::Sequential<First, attune::LayerNorm<attune::NormShape{
                                                     .rows = 4, .d_model = 6, .weight = false}>>,
                       17>();
  constexpr attune::EncoderLayerShape kAfter{.seq_len = 4, .d_model = 6, .num_heads = 2, .d_ff = 10};
  constexpr attune::EncoderLayerShape kBefore{
      .seq_len = 4, .d_model = 6, .num_heads = 2, .d_ff = 10, .norm = attune::NormPlacement::kBefore};
  expect_same_training<attune::Sequential<First, attune::EncoderLayer<kAfter>, attune::EncoderLayer<kBefore>,
                                          attune::Pooling<attune::PoolingShape{4, 6}>>,
                       21>();
  expect_same_training<attune::EncoderLayer<kBefore>, 17>(attune::CausalMask{});
  attune::KeyPaddingMask<4> keys;
  EXPECT_EQ(keys.set_length(3), attune::Status::kOk);
  expect_same_training<attune::EncoderLayer<kAfter>, 17>(keys);
  using Double = attune::EncoderLayer<kBefore, double>;
  expect_same_training<Double, 9>();
}

namespace {

using Classifier = attune::Sequential<attune::Linear<attune::LinearShape{4, 3, 6}>,
                                      attune::LayerNorm<attune::NormShape{4, 6}>,
                                      attune::Linear<attune::LinearShape{4, 6, 5}>>;

// Classes of 17 sequences, of which some are ignored.
template <class Loss>
void expect_same_classes() {
  constexpr int kBatch = 17;
  static Trainer<Classifier, Loss, kBatch, attune::Lockstep> lockstep;
  static Trainer<Classifier, Loss, kBatch, attune::Streaming> streaming;
  static typename decltype(lockstep)::BatchInput x;
  static typename decltype(lockstep)::BatchTarget classes;
  lockstep.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  for (int step = 0; step < 3; ++step) {
    check::fill(x, rng);
    for (int& id : classes) id = rng.next() % 7 == 0 ? -100 : static_cast<int>(rng.next() % 5);
    const auto together = lockstep.step(x, classes, {.learning_rate = 0.01f});
    const auto one_by_one = streaming.step(x, classes, {.learning_rate = 0.01f});
    EXPECT_TRUE(together.ok() && one_by_one.ok());
    EXPECT_EQ(together.loss, one_by_one.loss);
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
  }
  classes[30] = 5;
  const auto before = lockstep.parameters();
  EXPECT_EQ(lockstep.step(x, classes, {}).status, attune::Status::kInvalidTarget);
  EXPECT_TRUE(check::same_bits(lockstep.parameters(), before));
}

}  // namespace

TEST(Lockstep, trains_on_classes_as_one_by_one) {
  expect_same_classes<attune::CrossEntropy<>>();
  expect_same_classes<attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>>();
}

TEST(Lockstep, batch_may_have_any_size) {
  expect_same_training<Attention<kTiny>, 1>();
  if constexpr (check::kEveryCase) {
    expect_same_training<Attention<kTiny>, 3>();
  }
  expect_same_training<Attention<kTiny>, 21>();
}

TEST(Lockstep, trains_in_double_and_with_every_option) {
  expect_same_training<Attention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, double>,
                       9>();
  expect_same_training<
      Attention<attune::AttentionShape{.seq_len = 3,
                                       .d_model = 4,
                                       .num_heads = 2,
                                       .d_k = 3,
                                       .d_v = 5,
                                       .d_out = 2,
                                       .bias = false,
                                       .scaling = attune::Scaling::kInverseFourthRootDkEach}>,
      17>();
  expect_same_training<Attention<kTiny>, 17, attune::SumSquaredError>();
  expect_same_training<Attention<kTiny>, 17, attune::Huber<attune::HuberOptions{.delta = 0.5}>>();
  expect_same_training<Attention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, double>,
                       9, attune::Huber<attune::HuberOptions{.reduction = attune::Reduction::kSum}>>();
}

TEST(Lockstep, masks_are_those_of_one_by_one) {
  expect_same_training<Attention<kTiny>, 17>(attune::CausalMask{});
  attune::KeyPaddingMask<8> keys;
  attune::QueryPaddingMask<8> queries;
  EXPECT_EQ(keys.set_length(5), attune::Status::kOk);
  EXPECT_EQ(queries.set_length(6), attune::Status::kOk);
  expect_same_training<Attention<kTiny>, 17>(keys && queries);  // two rows without a key
  attune::Tensor<float, 8, 8> bias;
  attune::Rng rng(3);
  check::fill(bias, rng);
  bias(1, 2) = -check::kInfinity<float>;
  bias(3, 4) = bias(3, 7) = check::kInfinity<float>;  // the second is hidden by its padding
  expect_same_training<Attention<kTiny>, 17>(keys && attune::AdditiveMask(bias));
}

TEST(Lockstep, one_sequence_that_is_not_finite_discards_the_batch) {
  static Trainer<Attention<kTiny>, attune::MeanSquaredError, 32, attune::Lockstep> trainer;
  static decltype(trainer)::BatchInput x;
  static decltype(trainer)::BatchTarget target;
  trainer.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  check::fill(x, rng);
  check::fill(target, rng);
  const std::uint32_t before = attune::hash(trainer.parameters());
  x(37, 1) = check::kNan<float>;
  EXPECT_EQ(trainer.step(x, target, {}).status, attune::Status::kNotFinite);
  EXPECT_EQ(attune::hash(trainer.parameters()), before);
  x(37, 1) = 0;
  EXPECT_TRUE(trainer.step(x, target, {}).ok());
}

TEST(Lockstep, padding_that_is_not_finite_is_hidden_as_one_by_one) {
  constexpr int kBatch = 37;
  using Model = attune::Sequential<Attention<kTiny>, attune::Pooling<attune::PoolingShape{8, 4}>,
                                   attune::Linear<attune::LinearShape{1, 4, 2}>>;
  static Trainer<Model, attune::MeanSquaredError, kBatch, attune::Lockstep> lockstep;
  static Trainer<Model, attune::MeanSquaredError, kBatch, attune::Streaming> streaming;
  static decltype(lockstep)::BatchInput x;
  static decltype(lockstep)::BatchTarget target;
  attune::KeyPaddingMask<8> padding;
  EXPECT_EQ(padding.set_length(6), attune::Status::kOk);
  lockstep.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  for (int step = 0; step < 3; ++step) {
    check::fill(x, rng);
    check::fill(target, rng);
    x(3 * 8 + 7, 1) = check::kNan<float>;  // of some sequences
    x(20 * 8 + 6, 0) = check::kInfinity<float>;
    const auto together = lockstep.step(x, target, {}, attune::NoClipping{}, padding);
    const auto one_by_one = streaming.step(x, target, {}, attune::NoClipping{}, padding);
    EXPECT_TRUE(together.ok() && one_by_one.ok());
    EXPECT_EQ(together.loss, one_by_one.loss);
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
  }
  // What is not hidden is refused.
  const std::uint32_t before = attune::hash(lockstep.parameters());
  x(5 * 8 + 2, 1) = check::kNan<float>;
  EXPECT_EQ(lockstep.step(x, target, {}, attune::NoClipping{}, padding).status, attune::Status::kNotFinite);
  EXPECT_EQ(attune::hash(lockstep.parameters()), before);
}

TEST(Lockstep, with_a_mask_for_each_sequence_goes_one_by_one) {
  static Trainer<Attention<kTiny>, attune::MeanSquaredError, 17, attune::Lockstep> lockstep;
  static Trainer<Attention<kTiny>, attune::MeanSquaredError, 17, attune::Streaming> streaming;
  static decltype(lockstep)::BatchInput x;
  static decltype(lockstep)::BatchTarget target;
  std::array<attune::KeyPaddingMask<8>, 17> masks;
  for (int i = 0; i < 17; ++i) {
    EXPECT_EQ(masks[static_cast<std::size_t>(i)].set_length(1 + i % 8), attune::Status::kOk);
  }
  lockstep.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  check::fill(x, rng);
  check::fill(target, rng);
  EXPECT_TRUE(lockstep.step(x, target, {}, attune::NoClipping{}, masks).ok());
  EXPECT_TRUE(streaming.step(x, target, {}, attune::NoClipping{}, masks).ok());
  EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
}
