// Weights in bf16: the training in floats whose weights are rounded after every step, bit for bit.
#include <attune/training/stochastic_bfloat16.hpp>

#include <attune/layers/convolution.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>
#include <attune/training/adafactor.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/training/trainer.hpp>

#include "training/plan_check.hpp"

namespace {

using namespace attune;

using Int8Stochastic = Adam<AdamVariant{.moments = MomentPrecision::kInt8Stochastic}>;

// Odd numbers of weights, tables, and a convolution that reads its filters one by one.
using Model = Sequential<
    Linear<LinearShape{6, 5, 7}>, LearnedPositions<PositionShape{.seq_len = 6, .d_model = 7}>,
    Conv1d<Conv1dShape{.seq_len = 6, .d_in = 7, .d_out = 7, .kernel = 3, .groups = 7, .causal = true}>,
    Linear<LinearShape{6, 7, 6}>,
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 6, .d_model = 6, .num_heads = 2}, .d_ff = 13}>>;
// Factors of low rank, and a head.
using Body = Linear<LinearShape{4, 7, 5}>;
constexpr Body::Parameters kBody{};
using Lora = Sequential<Adapted<Body, kBody, LowRank{.rank = 3, .roles = Role::kProjections, .alpha = 4}>,
                        Linear<LinearShape{4, 5, 3}>>;
template <class Optimizer, class Plan = BySequence, int batch = 1, class OfModel = Model>
using TrainerOf =
    Trainer<OfModel, MeanSquaredError, Optimizer, batch, typename check::TestedPlan<Plan, Optimizer>::type>;

template <class Trainer>
auto options_of(float learning_rate) {
  if constexpr (requires(typename Trainer::Options options) { options.weights; }) {
    return typename Trainer::Options{.weights = {.learning_rate = learning_rate, .weight_decay = 0.01f}};
  } else {
    return typename Trainer::Options{.learning_rate = learning_rate, .weight_decay = 0.01f};
  }
}

// Rounds the weights of a state in floats, at random if there is a key.
template <class OfModel, class State>
void round_weights(State& state, const std::uint64_t* key) {
  using Halves = detail::SetOf<OfModel, Bfloat16Tensor, Tensor>;
  static Halves halves;
  std::uint32_t position = 0;
  for_each_tensor(
      [&]<class Leaf>(const TensorPath&, auto& tensor, Leaf&) {
        for (int i = 0; i < tensor.size && !std::is_same_v<Leaf, std::remove_reference_t<decltype(tensor)>>;
             ++i) {
          const std::uint32_t at = position + static_cast<std::uint32_t>(i);
          const float value = tensor.values[i];
          tensor.values[i] = key == nullptr
                                 ? round_to_bf16(value)
                                 : kernels::stochastic_bf16(value, kernels::PositionBits{*key}.at(at) >> 16);
        }
        position += static_cast<std::uint32_t>(tensor.size);
      },
      state.parameters, halves);
}

template <class Base, class Plan, class OfModel = Model>
void expect_float_training_that_is_rounded() {
  using Rounded = TrainerOf<StochasticBfloat16<Base>, Plan, 1, OfModel>;
  using Floats = TrainerOf<Base, Plan, 1, OfModel>;
  auto& rounded = check::fresh<0, Rounded>();
  auto& floats = check::fresh<1, Floats>();
  auto state = floats.state();
  round_weights<OfModel>(state, nullptr);
  const Rng rng(5);
  rounded.load(state.parameters, Rng(rng));
  floats.load(state.parameters, Rng(rng));
  std::uint64_t generator = detail::mix(std::bit_cast<std::uint64_t>(rng));
  static check::Batch<Floats> data;
  Rng of_data(7);
  for (int step = 0; step < 5; ++step) {
    data.draw(of_data);
    const auto result = rounded.step(data.x, data.target, options_of<Rounded>(0.01f));
    const auto expected = floats.step(data.x, data.target, options_of<Floats>(0.01f));
    ASSERT_TRUE(result.ok() && expected.ok());
    EXPECT_EQ(result.loss, expected.loss);
    EXPECT_EQ(result.gradient_norm, expected.gradient_norm);
    state = floats.state();
    const std::uint64_t key = detail::mix(generator += detail::kGamma);
    round_weights<OfModel>(state, &key);
    ASSERT_EQ(floats.resume(state), Status::kOk);
    static typename OfModel::Parameters widened;
    copy_parameters(rounded.parameters(), widened);
    EXPECT_TRUE(check::same_bits(widened, floats.parameters()));
  }
}

template <class Trainer>
void train(Trainer& trainer, int steps) {
  static check::Batch<Trainer> data;
  Rng rng(7);
  for (int step = 0; step < steps; ++step) {
    data.draw(rng);
    ASSERT_TRUE(trainer.step(data.x, data.target, options_of<Trainer>(0.01f)).ok());
  }
}

}  // namespace

TEST(StochasticBfloat16, halve_the_weights_and_nothing_else) {
  using Rounded = TrainerOf<StochasticBfloat16<AdamW>>;
  constexpr MemoryReport kFloats = TrainerOf<AdamW>::memory(), kRounded = Rounded::memory();
  // The odd tables have a padded half: 5·7, and the filters, 7·3.
  constexpr int kWeights = 35 + 6 * 7 + 21 + 7 * 6 + 4 * 36 + 2 * 6 * 13;
  static_assert(kFloats.parameters - kRounded.parameters == 2 * kWeights - 2 * 2);
  static_assert(kFloats.gradients == kRounded.gradients && kFloats.tape == kRounded.tape);
  static_assert(kRounded.moments == kFloats.moments + sizeof(std::uint64_t));  // the generator
  static_assert(kRounded.object() == sizeof(Rounded));
  static_assert(Rounded::memory_of_layer<0>().parameters == 36 * 2 + 7 * 4);
  static_assert(StochasticBfloat16<AdamW>::kFingerprint != AdamW::kFingerprint);
}

TEST(StochasticBfloat16, train_as_floats_that_are_rounded_after_each_step) {
  expect_float_training_that_is_rounded<AdamW, BySequence>();
  expect_float_training_that_is_rounded<ParameterGroups<Int8Stochastic>, UpdateInBackward>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_float_training_that_is_rounded<Adafactor<>, BySequence>();
    expect_float_training_that_is_rounded<AdamW, Int8Training>();
  }
}

TEST(StochasticBfloat16, round_by_the_seed) {
  using Optimizer = StochasticBfloat16<AdamW>;
  auto& whole = check::fresh<0, TrainerOf<Optimizer>>();
  auto& second = check::fresh<1, TrainerOf<Optimizer>>();
  second.load(whole.parameters(), Rng{9});
  whole.load(whole.parameters(), Rng{8});
  train(whole, 3);
  train(second, 3);
  EXPECT_FALSE(check::same_bits(whole.parameters(), second.parameters()));
}

TEST(StochasticBfloat16, train_to_the_same_bits_on_every_target) {
  auto& trainer = check::fresh<0, TrainerOf<StochasticBfloat16<AdamW>>>();
  train(trainer, 50);
  EXPECT_EQ(hash_bits(trainer.parameters()), ATTUNE_FUSED ? 0x2cee1539u : 0x4072a242u);
}

TEST(StochasticBfloat16, halve_a_tied_table) {
  using Text = Tied<Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 5, .d_model = 6}>,
                    Linear<LinearShape{4, 6, 6}>>;
  static_assert(
      std::is_same_v<
          decltype(Trainer<Text, CrossEntropy<>, StochasticBfloat16<AdamW>>::Parameters::embedding.weight),
          Bfloat16Tensor<float, 5, 6>>);
}

TEST(StochasticBfloat16, halve_factors_of_low_rank) {
  using Rounded = TrainerOf<StochasticBfloat16<AdamW>, BySequence, 1, Lora>;
  constexpr int kFactors = 7 * 3 + 3 * 5, kHead = 5 * 3;
  static_assert(TrainerOf<AdamW, BySequence, 1, Lora>::memory().parameters - Rounded::memory().parameters ==
                2 * (kFactors + kHead) - 3 * 2);  // three tensors have odd sizes
  expect_float_training_that_is_rounded<AdamW, BySequence, Lora>();
  expect_float_training_that_is_rounded<AdamW, UpdateInBackward, Lora>();
  expect_float_training_that_is_rounded<AdamW, Int8Training, Lora>();
  Rounded& trainer = check::fresh<0, Rounded>();
  train(trainer, 3);
  static Body::Parameters merged;
  const auto& factors = trainer.parameters().layer<0>();
  Lora::Layer<0>::merge(factors, merged);
  EXPECT_NEAR(merged.weight(2, 1),
              4.0f / 3 *
                  (float(factors.weight.a(2, 0)) * float(factors.weight.b(0, 1)) +
                   float(factors.weight.a(2, 1)) * float(factors.weight.b(1, 1)) +
                   float(factors.weight.a(2, 2)) * float(factors.weight.b(2, 1))),
              1e-6);
}

TEST(StochasticBfloat16, refuse_invalid_options_and_change_nothing) {
  auto& trainer = check::fresh<0, TrainerOf<StochasticBfloat16<AdamW>>>();
  const std::uint32_t before = hash_bits(trainer.parameters());
  static check::Batch<TrainerOf<AdamW>> data(1);
  EXPECT_EQ(trainer.step(data.x, data.target, {.learning_rate = -1}).status, Status::kInvalidLearningRate);
  data.x.values[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(trainer.step(data.x, data.target, {}).status, Status::kNotFinite);
  EXPECT_EQ(hash_bits(trainer.parameters()), before);
  EXPECT_EQ(trainer.state().moments.weights.state,
            (check::fresh<1, TrainerOf<StochasticBfloat16<AdamW>>>().state().moments.weights.state));
}
