// Trainings whose moments are in 16 bits.
#include <attune/training/bfloat16_set.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using attune::MomentPrecision;
using Rounded = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kBfloat16}>;
using RoundedMomentum = attune::Sgd<attune::Momentum::kClassic, float, MomentPrecision::kBfloat16>;
using RoundedNesterov = attune::Sgd<attune::Momentum::kNesterov, float, MomentPrecision::kBfloat16>;

// 5 · 7 + 7 weights: tensors begin anywhere in a packet.
using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{4, 5, 7}>,
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 7, .num_heads = 1}>>;
template <class Optimizer, int batch = 1, class Plan = attune::Streaming>
using TrainerOf = attune::Trainer<Model, attune::MeanSquaredError, Optimizer, batch, Plan>;

template <class Options>
Options options_of(float learning_rate) {
  if constexpr (requires(Options options) { options.weights; }) {
    return {.weights = {.learning_rate = learning_rate}};
  } else {
    return {.learning_rate = learning_rate};
  }
}
template <class Trainer>
void fill_batch(typename Trainer::BatchInput& x, typename Trainer::BatchTarget& target, attune::Rng& rng) {
  check::fill(x, rng);
  check::fill(target, rng);
}

// A step, or the same in the smallest slices.
template <class Trainer>
void train(Trainer& trainer, int from, int to, bool in_slices = false) {
  const auto options = options_of<typename Trainer::Options>(0.01f);
  attune::Rng rng(7);
  static typename Trainer::BatchInput x;
  static typename Trainer::BatchTarget target;
  for (int step = 0; step < to; ++step) {
    fill_batch<Trainer>(x, target, rng);
    if (step < from) continue;
    if constexpr (std::is_same_v<typename Trainer::BatchInput, Model::Input> &&
                  requires { trainer.gradients(); }) {
      if (in_slices) {
        ASSERT_TRUE(trainer.accumulate(x, target).ok());
        auto update = trainer.template update_in_slices<1>(options);
        int slices = 0;
        while (update.advance()) ++slices;
        ASSERT_TRUE(update.result().ok());
        EXPECT_GT(slices, 10);
        continue;
      }
    }
    ASSERT_TRUE(trainer.step(x, target, options).ok());
  }
}

template <class Optimizer, int batch, class Plan>
void expect_same_bits() {
  static TrainerOf<Optimizer, batch> streaming;
  static TrainerOf<Optimizer, batch, Plan> other;
  streaming.initialize(attune::XavierUniform{}, attune::Rng{3});
  other.initialize(attune::XavierUniform{}, attune::Rng{3});
  train(streaming, 0, 6);
  train(other, 0, 6);
  EXPECT_TRUE(check::same_bits(streaming.parameters(), other.parameters()));
}

}  // namespace

TEST(Bfloat16Set, halves_moments) {
  constexpr std::size_t kCounters = 2 * sizeof(std::uint64_t), kKey = sizeof(std::uint64_t);
  static_assert(TrainerOf<attune::AdamW>::memory().moments == 2 * sizeof(Model::Parameters) + kCounters);
  static_assert(TrainerOf<Rounded>::memory().moments == sizeof(Model::Parameters) + kCounters + kKey);
  static_assert(TrainerOf<Rounded>::memory().object() == sizeof(TrainerOf<Rounded>));
  static_assert(sizeof(RoundedMomentum::Moments<Model::Parameters>) <=
                sizeof(Model::Parameters) / 2 + 3 * sizeof(std::uint64_t));
}

TEST(Bfloat16Set, is_the_same_in_every_plan) {
  expect_same_bits<Rounded, 1, attune::UpdateInBackward>();
  expect_same_bits<RoundedMomentum, 1, attune::UpdateInBackward>();
  expect_same_bits<RoundedNesterov, 1, attune::UpdateInBackward>();
  expect_same_bits<attune::ParameterGroups<Rounded>, 1, attune::UpdateInBackward>();
  expect_same_bits<Rounded, 19, attune::Lockstep>();
}

TEST(Bfloat16Set, is_the_same_in_slices) {
  static TrainerOf<Rounded> at_once, in_slices;
  at_once.initialize(attune::XavierUniform{}, attune::Rng{3});
  in_slices.initialize(attune::XavierUniform{}, attune::Rng{3});
  train(at_once, 0, 4);
  train(in_slices, 0, 4, true);
  EXPECT_TRUE(check::same_bits(at_once.parameters(), in_slices.parameters()));
}

TEST(Bfloat16Set, goes_on_from_a_state_to_the_same_bits) {
  static TrainerOf<Rounded> whole, first;
  static TrainerOf<Rounded, 1, attune::UpdateInBackward> second;
  whole.initialize(attune::XavierUniform{}, attune::Rng{3});
  first.initialize(attune::XavierUniform{}, attune::Rng{3});
  second.initialize(attune::XavierUniform{}, attune::Rng{4});
  train(whole, 0, 8);
  train(first, 0, 5);
  EXPECT_EQ(second.resume(first.state()), attune::Status::kOk);
  train(second, 5, 8);
  EXPECT_TRUE(check::same_bits(whole.parameters(), second.parameters()));
}

TEST(Bfloat16Set, rounds_by_the_seed_of_the_training) {
  static TrainerOf<Rounded> a, b, c;
  a.initialize(attune::XavierUniform{}, attune::Rng{3});
  b.load(a.parameters(), attune::Rng{1});
  c.load(a.parameters(), attune::Rng{2});
  a.load(b.parameters(), attune::Rng{1});
  for (auto* trainer : {&a, &b, &c}) train(*trainer, 0, 4);
  EXPECT_TRUE(check::same_bits(a.parameters(), b.parameters()));
  EXPECT_FALSE(check::same_bits(b.parameters(), c.parameters()));
}

TEST(Bfloat16Set, groups_of_the_same_options_have_the_bits_of_the_optimizer) {
  static TrainerOf<Rounded> one;
  static TrainerOf<attune::ParameterGroups<Rounded>> groups;
  one.initialize(attune::XavierUniform{}, attune::Rng{3});
  groups.initialize(attune::XavierUniform{}, attune::Rng{3});
  train(one, 0, 6);
  train(groups, 0, 6);
  EXPECT_TRUE(check::same_bits(one.parameters(), groups.parameters()));
}

TEST(Bfloat16Set, another_precision_is_another_state) {
  static_assert(Rounded::kFingerprint != attune::AdamW::kFingerprint);
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
  static Trainer trainer;
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

TEST(Bfloat16Set, learns_as_well_as_moments_in_full) {
  const Learned full = learn<attune::AdamW>(), rounded = learn<Rounded>();
  EXPECT_LT(full.last, full.first / 4);
  EXPECT_LT(rounded.last, 1.05f * full.last);
}

TEST(Bfloat16Set, trains_to_the_same_bits_on_every_target) {
  EXPECT_EQ(learn<Rounded>().parameters, ATTUNE_FUSED ? 0xd367f587u : 0x8dd8e20au);
  EXPECT_EQ(learn<RoundedNesterov>().parameters, ATTUNE_FUSED ? 0x596c3d23u : 0x80e9c6ebu);
}
