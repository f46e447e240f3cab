// Trainings whose moments are in 8 and 16 bits, and without first moments.
#include <attune/training/moment_sets.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "training/plan_check.hpp"

namespace {

using attune::MomentPrecision;
using Rounded = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kBfloat16}>;
using RoundedMomentum = attune::Sgd<attune::Momentum::kClassic, float, MomentPrecision::kBfloat16>;

using attune::AdamVariant, attune::FirstMoment, attune::Momentum;
using Int8 = attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8}>;
using Int8Stochastic = attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8Stochastic}>;
using WithoutFirst = attune::Adam<AdamVariant{.first_moment = FirstMoment::kNone}>;
using Int8WithoutFirst =
    attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8, .first_moment = FirstMoment::kNone}>;
using Int8Momentum = attune::Sgd<Momentum::kClassic, float, MomentPrecision::kInt8>;

// 5 · 7 + 7 weights: tensors begin anywhere in a packet. 130 · 6: blocks of 64 begin anywhere in a row.
using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{4, 5, 130}>, attune::Linear<attune::LinearShape{4, 130, 6}>,
    attune::Linear<attune::LinearShape{4, 6, 7}>,
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 7, .num_heads = 1}>>;
template <class Optimizer>
using TrainerOf = attune::Trainer<Model, attune::MeanSquaredError, Optimizer>;

template <class Trainer>
void train(Trainer& trainer, int steps) {
  attune::Rng rng(7);
  static check::Batch<Trainer> data;
  for (int step = 0; step < steps; ++step) {
    data.draw(rng);
    ASSERT_TRUE(trainer.step(data.x, data.target, {.learning_rate = 0.01f}).ok());
  }
}

}  // namespace

TEST(MomentSets, halves_moments) {
  constexpr std::size_t kCounters = 2 * sizeof(std::uint64_t), kKey = sizeof(std::uint64_t);
  static_assert(TrainerOf<attune::AdamW>::memory().moments == 2 * sizeof(Model::Parameters) + kCounters);
  static_assert(TrainerOf<Rounded>::memory().moments ==
                (sizeof(Model::Parameters) + 7) / 8 * 8 + kCounters + kKey);
  static_assert(TrainerOf<Rounded>::memory().object() == sizeof(TrainerOf<Rounded>));
  static_assert(sizeof(RoundedMomentum::Moments<Model::Parameters>) <=
                sizeof(Model::Parameters) / 2 + 3 * sizeof(std::uint64_t));
}

TEST(MomentSets, of_8_bits_take_2_to_2_13_bytes_a_parameter) {
  using Layer =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}>;
  constexpr std::size_t kCounters = 2 * sizeof(std::uint64_t), kParameters = 4224;
  constexpr std::size_t kScales = 4 * (1024 / 64 + 1) * sizeof(float);
  static_assert(sizeof(Int8::Moments<Layer::Parameters>) == 2 * (kParameters + kScales) + kCounters);
  static_assert(sizeof(Int8WithoutFirst::Moments<Layer::Parameters>) == kParameters + kScales + kCounters);
  static_assert(sizeof(Int8Momentum::Moments<Layer::Parameters>) <= kParameters + kScales + 8);
  static_assert(sizeof(WithoutFirst::Moments<Layer::Parameters>) == 4 * kParameters + kCounters);
}

TEST(MomentSets, round_by_the_seed_of_the_training) {
  const auto train_three = []<class Optimizer>(std::type_identity<Optimizer>) {
    auto& a = check::fresh<0, TrainerOf<Optimizer>>();
    auto& b = check::fresh<1, TrainerOf<Optimizer>>();
    auto& c = check::fresh<2, TrainerOf<Optimizer>>();
    b.load(a.parameters(), attune::Rng{1});
    c.load(a.parameters(), attune::Rng{2});
    a.load(b.parameters(), attune::Rng{1});
    for (auto* trainer : {&a, &b, &c}) train(*trainer, 4);
    EXPECT_TRUE(check::same_bits(a.parameters(), b.parameters()));
    return check::same_bits(b.parameters(), c.parameters());
  };
  EXPECT_FALSE(train_three(std::type_identity<Rounded>{}));
  EXPECT_FALSE(train_three(std::type_identity<Int8Stochastic>{}));
  EXPECT_TRUE(train_three(std::type_identity<Int8>{}));
}

TEST(MomentSets, without_a_first_moment_steps_equal_beta1_zero) {
  auto& with = check::fresh<0, TrainerOf<attune::AdamW>>();
  auto& without = check::fresh<1, TrainerOf<WithoutFirst>>();
  static check::Example<Model> data;
  attune::Rng rng(7);
  for (int step = 0; step < 4; ++step) {
    data.draw(rng);
    ASSERT_TRUE(with.step(data.x, data.target, {.learning_rate = 0.01f, .beta1 = 0.0}).ok());
    ASSERT_TRUE(without.step(data.x, data.target, {.learning_rate = 0.01f}).ok());
  }
  EXPECT_TRUE(check::same_bits(with.parameters(), without.parameters()));
  EXPECT_EQ(WithoutFirst::check({.beta1 = 0.9}), attune::Status::kInvalidBeta);
}

TEST(MomentSets, another_precision_is_another_state) {
  static_assert(Rounded::kFingerprint != attune::AdamW::kFingerprint);
  static_assert(Int8::kFingerprint != Rounded::kFingerprint);
  static_assert(Int8::kFingerprint != Int8Stochastic::kFingerprint);
  static_assert(Int8::kFingerprint != Int8WithoutFirst::kFingerprint);
  static_assert(WithoutFirst::kFingerprint != attune::AdamW::kFingerprint);
  static_assert(RoundedMomentum::kFingerprint != attune::Sgd<attune::Momentum::kClassic>::kFingerprint);
}

namespace {

struct Learned {
  float first, last;  // mean losses of the first and the last steps
};

// The mean of the tokens so far, which causal attention can learn.
template <class Optimizer>
Learned learn() {
  using Layer = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 6, .d_model = 8, .num_heads = 2},
      .d_ff = 16,
      .norm = attune::NormPlacement::kBefore}>;
  using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, Optimizer, 4>;
  auto& trainer = check::fresh<0, Trainer>();
  static typename Trainer::BatchInput x;
  static typename Trainer::BatchTarget target;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  Learned learned{};
  constexpr int kSteps = 400, kSome = 20;
  for (int step = 0; step < kSteps; ++step) {
    check::fill(x, rng);
    for (int i = 0; i < x.rows; ++i) {
      for (int j = 0; j < x.cols; ++j) {
        float total = 0;
        const int first = i / 6 * 6;
        for (int k = first; k <= i; ++k) total += x(k, j);
        target(i, j) = total / static_cast<float>(i - first + 1);
      }
    }
    const auto result =
        trainer.step(x, target, {.learning_rate = 1e-2f}, attune::NoClipping{}, attune::CausalMask{});
    EXPECT_TRUE(result.ok());
    if (step < kSome) learned.first += result.loss / kSome;
    if (step >= kSteps - kSome) learned.last += result.loss / kSome;
  }
  return learned;
}

}  // namespace

TEST(MomentSets, learns_as_well_as_moments_in_full) {
  const Learned full = learn<attune::AdamW>(), rounded = learn<Rounded>();
  EXPECT_LT(full.last, full.first / 4);
  EXPECT_LT(rounded.last, 1.05f * full.last);
  EXPECT_LT(learn<Int8>().last, 1.05f * full.last);
  EXPECT_LT(learn<Int8Stochastic>().last, 1.05f * full.last);
}

TEST(MomentSets, of_8_bits_learn_as_well_without_a_first_moment) {
  const Learned full = learn<WithoutFirst>(), rounded = learn<Int8WithoutFirst>();
  EXPECT_LT(full.last, full.first / 4);
  EXPECT_LT(rounded.last, 1.05f * full.last);
}
