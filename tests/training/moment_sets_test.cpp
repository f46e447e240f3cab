// Trainings whose moments are in 8 and 16 bits, and without first moments.
#include <attune/training/moment_sets.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/training/trainer.hpp>

#include "training/plan_check.hpp"

namespace {

using attune::MomentPrecision;
using Rounded = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kBfloat16}>;
using RoundedMomentum = attune::Sgd<attune::Momentum::kClassic, float, MomentPrecision::kBfloat16>;
using RoundedNesterov = attune::Sgd<attune::Momentum::kNesterov, float, MomentPrecision::kBfloat16>;

using attune::AdamVariant, attune::FirstMoment, attune::Momentum, attune::ParameterGroups;
using Int8 = attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8}>;
using Int8Stochastic = attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8Stochastic}>;
using WithoutFirst = attune::Adam<AdamVariant{.first_moment = FirstMoment::kNone}>;
using Int8WithoutFirst =
    attune::Adam<AdamVariant{.moments = MomentPrecision::kInt8, .first_moment = FirstMoment::kNone}>;
using Int8Momentum = attune::Sgd<Momentum::kClassic, float, MomentPrecision::kInt8>;
using Int8Nesterov = attune::Sgd<Momentum::kNesterov, float, MomentPrecision::kInt8Stochastic>;

// 5 · 7 + 7 weights: tensors begin anywhere in a packet. 130 · 6: blocks of 64 begin anywhere in a row.
using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{4, 5, 130}>, attune::Linear<attune::LinearShape{4, 130, 6}>,
    attune::Linear<attune::LinearShape{4, 6, 7}>,
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 7, .num_heads = 1}>>;
template <class Optimizer, int batch = 1, class Plan = attune::BySequence>
using TrainerOf = attune::Trainer<Model, attune::MeanSquaredError, Optimizer, batch, Plan>;

template <class Options>
Options options_of(float learning_rate) {
  if constexpr (requires(Options options) { options.weights; }) {
    return {.weights = {.learning_rate = learning_rate}};
  } else {
    return {.learning_rate = learning_rate};
  }
}

// A step, or the same in the smallest slices.
template <class Trainer>
void train(Trainer& trainer, int from, int to, bool in_slices = false) {
  const auto options = options_of<typename Trainer::Options>(0.01f);
  attune::Rng rng(7);
  static check::Batch<Trainer> data;
  for (int step = 0; step < to; ++step) {
    data.draw(rng);
    if (step < from) continue;
    if constexpr (std::is_same_v<typename Trainer::BatchInput, Model::Input> &&
                  requires { trainer.gradients(); }) {
      if (in_slices) {
        ASSERT_TRUE(trainer.accumulate(data.x, data.target).ok());
        auto update = trainer.template update_in_slices<1>(options);
        int slices = 0;
        while (update.advance()) ++slices;
        ASSERT_TRUE(update.result().ok());
        EXPECT_GT(slices, 10);
        continue;
      }
    }
    ASSERT_TRUE(trainer.step(data.x, data.target, options).ok());
  }
}

template <class Optimizer, int batch, class Plan>
void expect_same_bits() {
  auto& streaming = check::fresh<0, TrainerOf<Optimizer, batch>>();
  auto& other = check::fresh<1, TrainerOf<Optimizer, batch, Plan>>();
  train(streaming, 0, 6);
  train(other, 0, 6);
  EXPECT_TRUE(check::same_bits(streaming.parameters(), other.parameters()));
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

namespace {

template <class Optimizer>
void expect_same_bits_in_backward() {
  expect_same_bits<Optimizer, 1, attune::UpdateInBackward>();
}
template <class Optimizer>
void expect_same_bits_in_slices() {
  auto& at_once = check::fresh<0, TrainerOf<Optimizer>>();
  auto& in_slices = check::fresh<1, TrainerOf<Optimizer>>();
  train(at_once, 0, 4);
  train(in_slices, 0, 4, true);
  EXPECT_TRUE(check::same_bits(at_once.parameters(), in_slices.parameters()));
}
template <class Optimizer>
void expect_same_bits_from_a_state() {
  auto& whole = check::fresh<0, TrainerOf<Optimizer>>();
  auto& first = check::fresh<1, TrainerOf<Optimizer>>();
  auto& second = check::fresh<2, TrainerOf<Optimizer, 1, attune::UpdateInBackward>>();
  train(whole, 0, 8);
  train(first, 0, 5);
  EXPECT_EQ(second.resume(first.state()), attune::Status::kOk);
  train(second, 5, 8);
  EXPECT_TRUE(check::same_bits(whole.parameters(), second.parameters()));
}

}  // namespace

TEST(MomentSets, are_the_same_in_backward) {
  expect_same_bits_in_backward<Rounded>();
  if constexpr (!check::kQuickBuild) {
    expect_same_bits_in_backward<RoundedNesterov>();
    expect_same_bits_in_backward<WithoutFirst>();
    expect_same_bits_in_backward<Int8WithoutFirst>();
    expect_same_bits_in_backward<RoundedMomentum>();
    expect_same_bits_in_backward<Int8>();
    expect_same_bits_in_backward<Int8Momentum>();
  } else {
    check::leave_case();
  }
  expect_same_bits_in_backward<Int8Stochastic>();
  expect_same_bits_in_backward<Int8Nesterov>();
  expect_same_bits_in_backward<ParameterGroups<Int8Stochastic>>();
}

TEST(MomentSets, are_the_same_in_lockstep) {
  if constexpr (check::kHasLanes) {
    if constexpr (check::kDepth >= check::kFullHost) expect_same_bits<Rounded, 19, attune::Lockstep>();
    expect_same_bits<Int8Stochastic, 19, attune::Lockstep>();
  }
}

TEST(MomentSets, are_the_same_in_slices) {
  expect_same_bits_in_slices<Rounded>();
  expect_same_bits_in_slices<Int8Stochastic>();
  if constexpr (!check::kQuickBuild) {
    expect_same_bits_in_slices<WithoutFirst>();
    expect_same_bits_in_slices<Int8WithoutFirst>();
  } else {
    check::leave_case();
  }
  expect_same_bits_in_slices<Int8Nesterov>();
}

TEST(MomentSets, resume_from_a_state_to_the_same_bits) {
  expect_same_bits_from_a_state<Rounded>();
  if constexpr (!check::kQuickBuild) {
    expect_same_bits_from_a_state<Int8>();
    expect_same_bits_from_a_state<WithoutFirst>();
    expect_same_bits_from_a_state<Int8Momentum>();
  } else {
    check::leave_case();
  }
  expect_same_bits_from_a_state<Int8Stochastic>();
}

TEST(MomentSets, round_by_the_seed_of_the_training) {
  const auto train_three = []<class Optimizer>(std::type_identity<Optimizer>) {
    auto& a = check::fresh<0, TrainerOf<Optimizer>>();
    auto& b = check::fresh<1, TrainerOf<Optimizer>>();
    auto& c = check::fresh<2, TrainerOf<Optimizer>>();
    b.load(a.parameters(), attune::Rng{1});
    c.load(a.parameters(), attune::Rng{2});
    a.load(b.parameters(), attune::Rng{1});
    for (auto* trainer : {&a, &b, &c}) train(*trainer, 0, 4);
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

TEST(MomentSets, groups_of_the_same_options_have_the_bits_of_the_optimizer) {
  auto& one = check::fresh<0, TrainerOf<Rounded>>();
  auto& groups = check::fresh<1, TrainerOf<attune::ParameterGroups<Rounded>>>();
  train(one, 0, 6);
  train(groups, 0, 6);
  EXPECT_TRUE(check::same_bits(one.parameters(), groups.parameters()));
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
  std::uint32_t parameters;
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
  learned.parameters = attune::hash_bits(trainer.parameters());
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

TEST(MomentSets, trains_to_the_same_bits_on_every_target) {
  EXPECT_EQ(learn<Rounded>().parameters, ATTUNE_FUSED ? 0xd367f587u : 0x8dd8e20au);
  EXPECT_EQ(learn<RoundedNesterov>().parameters, ATTUNE_FUSED ? 0x596c3d23u : 0x80e9c6ebu);
  EXPECT_EQ(learn<Int8>().parameters, ATTUNE_FUSED ? 0xa9322e27u : 0xab5da8efu);
  EXPECT_EQ(learn<Int8Stochastic>().parameters, ATTUNE_FUSED ? 0xa1516fcfu : 0x0f804d51u);
  EXPECT_EQ(learn<WithoutFirst>().parameters, ATTUNE_FUSED ? 0xf3f1a0b7u : 0x5f0e71a5u);
  EXPECT_EQ(learn<Int8Nesterov>().parameters, ATTUNE_FUSED ? 0x5933b6f6u : 0x91df56c8u);
}
