#include <attune/training/update_in_backward.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>

#include "training/plan_check.hpp"

namespace {

template <class Model>
void expect_same_training() {
  check::expect_same_training<attune::UpdateInBackward, Model, 1>();
}

constexpr attune::AttentionShape kShape{.seq_len = 6, .d_model = 12, .num_heads = 3};
using Layer = attune::MultiHeadAttention<kShape>;
using InBackward =
    attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward>;

template <class Trainer>
concept Accumulates = requires(Trainer& trainer, typename Trainer::InputView x,
                               typename Trainer::TargetView target) {
  trainer.accumulate(x, target);
};
static_assert(!Accumulates<InBackward> && Accumulates<attune::Trainer<Layer>>);

}  // namespace

TEST(UpdateInBackward, trains_more_rows_than_a_block_of_a_sum_as_with_gradients) {
  expect_same_training<attune::Linear<attune::LinearShape{.rows = 200, .d_in = 11, .d_out = 3}>>();
}

TEST(UpdateInBackward, invalid_ids_change_nothing) {
  using Table = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 5, .d_model = 6}>;
  static attune::Trainer<Table, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  const Table::Parameters before = trainer.parameters();
  const Table::Output target{};
  EXPECT_EQ(trainer.step(Table::Input{0, 1, 5, 2}, target, {}).status, attune::Status::kInvalidToken);
  EXPECT_TRUE(check::same_bits(trainer.parameters(), before));
  EXPECT_TRUE(trainer.step(Table::Input{0, 1, 4, 2}, target, {}).ok());
  EXPECT_FALSE(check::same_bits(trainer.parameters(), before));
}

namespace {

template <attune::NormPlacement norm>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 6, .d_model = 12, .num_heads = 3}, .d_ff = 20, .norm = norm}>;

template <class Model>
using InBackwardOf =
    attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward>;
template <attune::NormPlacement norm>
using Stack =
    attune::Sequential<attune::Linear<attune::LinearShape{6, 4, 12}>, attune::Repeat<3, Encoder<norm>>,
                       attune::LayerNorm<attune::NormShape{.rows = 6, .d_model = 12}>,
                       attune::Pooling<attune::PoolingShape{.seq_len = 6, .d_model = 12}>>;

}  // namespace

TEST(UpdateInBackward, pre_norm_layers_take_no_memory_besides_gradient_rows) {
  using attune::NormPlacement;
  using Model = Stack<NormPlacement::kBefore>;
  constexpr attune::MemoryReport with = attune::Trainer<Model>::memory(),
                                 without = InBackwardOf<Model>::memory();
  static_assert(without.scratch == with.scratch);
  static_assert(without.gradients == sizeof(float) * 8 * 20);  // of W₁
  static_assert(without.tape == with.tape);
  static_assert(with.gradients == sizeof(Model::Parameters));
  // With norms after branches, gradients have three matrices of their own: before the layers and between
  // them.
  using After = Stack<NormPlacement::kAfter>;
  static_assert(InBackwardOf<After>::memory().scratch - attune::Trainer<After>::memory().scratch ==
                3 * sizeof(float) * 6 * 12);
  // Biases and norms, whose gradients are fewer than a matrix of tokens.
  static Model::Parameters constants;
  using Vectors = attune::BiasesAndNorms<Model, constants>;
  static_assert(InBackwardOf<Vectors>::memory().object() < attune::Trainer<Vectors>::memory().object());
}

TEST(UpdateInBackward, keeps_eight_rows_of_gradient) {
  using BySequence = attune::Trainer<Layer>;
  constexpr attune::MemoryReport with = BySequence::memory(), without = InBackward::memory();
  static_assert(with.gradients == sizeof(Layer::Parameters));
  static_assert(without.gradients == sizeof(float) * 8 * 12);
  static_assert(with.object() - without.object() == with.gradients - without.gradients);
  EXPECT_EQ(sizeof(BySequence) - sizeof(InBackward), with.gradients - without.gradients);
}

TEST(UpdateInBackward, refused_steps_change_nothing) {
  static InBackward refused, fresh;
  refused.initialize(attune::XavierUniform{}, attune::Rng{42});
  fresh.initialize(attune::XavierUniform{}, attune::Rng{42});
  check::Example<Layer> data(1);
  EXPECT_EQ(refused.step(data.x, data.target, {.learning_rate = -1.0f}).status,
            attune::Status::kInvalidLearningRate);
  data.target(2, 3) = check::kNan<float>;
  EXPECT_EQ(refused.step(data.x, data.target, {}).status, attune::Status::kNotFinite);
  data.target(2, 3) = 0;
  EXPECT_TRUE(refused.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(fresh.step(data.x, data.target, {}).ok());
  EXPECT_TRUE(check::same_bits(refused.parameters(), fresh.parameters()));
}

TEST(UpdateInBackward, input_that_is_not_finite_changes_nothing_even_where_the_loss_is) {
  // The mean takes the first token only, so the loss is finite, and the gradient is not.
  using Model = attune::Sequential<
      attune::Linear<attune::LinearShape{3, 2, 4}>,
      attune::Pooling<attune::PoolingShape{.seq_len = 3, .d_model = 4, .kind = attune::PoolingKind::kFirst}>,
      attune::Linear<attune::LinearShape{1, 4, 2}>>;
  using Trainer =
      attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward>;
  static Trainer disturbed, calm;
  disturbed.initialize(attune::XavierUniform{}, attune::Rng{1});
  calm.initialize(attune::XavierUniform{}, attune::Rng{1});
  const Model::Input good{{1, 2, 3, 4, 5, 6}};
  const Model::Output target{{1, 1}};
  for (const float value : {check::kNan<float>, check::kInfinity<float>}) {
    Model::Input bad = good;
    bad(2, 1) = value;
    const auto refused = disturbed.step(bad, target, {});
    EXPECT_EQ(refused.status, attune::Status::kNotFinite);
    EXPECT_TRUE(check::is_nan(refused.loss));
  }
  EXPECT_TRUE(disturbed.step(good, target, {}).ok());
  EXPECT_TRUE(calm.step(good, target, {}).ok());
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}

namespace {

using First = attune::Linear<attune::LinearShape{1, 2, 16}>;
using Second = attune::Linear<attune::LinearShape{1, 16, 1}>;
using Two = attune::Sequential<First, Second>;

// Everything is finite but for the gradient of the first layer, which is too large to be squared.
template <class Optimizer>
void expect_finite_parameters(const typename Optimizer::Options& options) {
  static attune::Trainer<Two, attune::MeanSquaredError, Optimizer, 1, attune::UpdateInBackward> trainer;
  Two::Parameters parameters{};
  for (float& value : parameters.layer<0>().weight.values) value = 1e-19f;
  for (float& value : parameters.layer<1>().weight.values) value = 1;
  trainer.load(parameters);
  const auto result = trainer.step(Two::Input{{1.5e19f, 0}}, Two::Output{{1e3f}}, options);
  EXPECT_EQ(result.status, attune::Status::kNotFinite);
  EXPECT_TRUE(check::is_nan(result.loss));
  // The second layer came first and was updated; the first one was not.
  EXPECT_TRUE(check::same_bits(trainer.parameters().template layer<0>(), parameters.layer<0>()));
  EXPECT_FALSE(check::same_bits(trainer.parameters().template layer<1>(), parameters.layer<1>()));
  EXPECT_TRUE(attune::detail::finite(attune::gradient_norm<float>(trainer.parameters())));
  for (int step = 0; step < 3; ++step)
    EXPECT_TRUE(trainer.step(Two::Input{{1, 1}}, Two::Output{{1}}, options).ok());
}

}  // namespace

TEST(UpdateInBackward, a_gradient_that_overflows_is_not_applied) {
  expect_finite_parameters<attune::AdamW>({});
  expect_finite_parameters<attune::Sgd<>>({});
  expect_finite_parameters<attune::Sgd<attune::Momentum::kClassic>>({});
}
