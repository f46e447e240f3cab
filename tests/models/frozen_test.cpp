#include <attune/models/frozen.hpp>

#include <attune/layers/dropout.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using attune::Sequential;

using Embed = attune::Linear<attune::LinearShape{.rows = 3, .d_in = 2, .d_out = 4}>;
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 5}>;
using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 3, .d_model = 4}>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;

using Everything = Sequential<Embed, Encoder, Mean, Head>;
using Backbone = Sequential<Embed, Encoder, Mean>;

// Any numbers, made by the compiler.
template <class Parameters>
consteval Parameters constants() {
  Parameters parameters{};
  unsigned state = 1;
  attune::for_each_tensor(
      [&state](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) {
          state = state * 1664525u + 1013904223u;
          value = static_cast<float>(state >> 16) / 32768.0f - 1.0f;
        }
      },
      parameters);
  return parameters;
}
constexpr Backbone::Parameters kBackbone = constants<Backbone::Parameters>();
constexpr Embed::Parameters kEmbed = kBackbone.layer<0>();

using HeadOnly = Sequential<attune::Frozen<Backbone, kBackbone>, Head>;
using LastBlock = Sequential<attune::Frozen<Embed, kEmbed>, Encoder, Mean, Head>;

template <class Model>
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>>;

}  // namespace

TEST(Frozen, costs_no_gradient_no_moment_and_no_tape) {
  constexpr attune::MemoryReport all = Trainer<Everything>::memory(), head = Trainer<HeadOnly>::memory(),
                                 last = Trainer<LastBlock>::memory();
  static_assert(head.object() == sizeof(Trainer<HeadOnly>) && last.object() == sizeof(Trainer<LastBlock>));
  static_assert(head.parameters == sizeof(Head::Parameters) && head.gradients == head.parameters);
  static_assert(head.moments == 2 * head.parameters + all.moments - 2 * all.parameters);
  static_assert(head.tape == sizeof(Mean::Output) + sizeof(Head::Output));
  static_assert(last.parameters == all.parameters - sizeof(Embed::Parameters));
  static_assert(last.tape == all.tape);
  EXPECT_LT(head.object(), last.object());
  EXPECT_LT(last.object(), all.object());
}

namespace {

// A part of constants, where it stands.
constexpr Everything::Parameters kEverything = constants<Everything::Parameters>();
constexpr auto kFront = attune::references_to<Embed>(kEverything.layer<0>());
constexpr auto kBlock = attune::references_to<Encoder>(kEverything.layer<1>());
using AfterFront = Sequential<attune::Frozen<Embed, kFront>, Encoder, Mean, Head>;

}  // namespace

TEST(Frozen, parts_of_constants_are_constants_of_parts) {
  static Trainer<AfterFront> trainer;
  static Trainer<Everything> everything;
  static_assert(sizeof kFront == 2 * sizeof(void*));
  // The encoder is given, from flash; the head is new.
  const auto give = [](auto& parameters) {
    attune::copy_parameters(kEverything.layer<1>(), parameters.template layer<1>());
  };
  trainer.start_from(give, attune::XavierUniform{}, attune::Rng{3});
  EXPECT_TRUE(check::same_bits(trainer.parameters().layer<1>(), kEverything.layer<1>()));
  static Everything::Parameters parameters = kEverything;
  EXPECT_FALSE(check::same_bits(trainer.parameters().layer<3>(), parameters.layer<3>()));
  parameters.layer<3>() = trainer.parameters().layer<3>();
  everything.load(parameters);
  Everything::Input x;
  attune::Rng rng(4);
  check::fill(x, rng);
  const int target[] = {0};
  EXPECT_EQ(trainer.accumulate(x, target).loss, everything.accumulate(x, target).loss);
  EXPECT_TRUE(check::same_bits(trainer.gradients().layer<1>(), everything.gradients().layer<1>()));
  // The encoder by references, too, whose parts have roles.
  static Trainer<Sequential<attune::Frozen<Embed, kFront>, attune::Frozen<Encoder, kBlock>, Mean, Head>> head;
  head.start_from([&](auto& new_head) { new_head.template layer<3>() = parameters.layer<3>(); },
                  attune::XavierUniform{}, attune::Rng{3});
  EXPECT_EQ(head.accumulate(x, target), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(head.gradients().layer<3>(), everything.gradients().layer<3>()));
}

TEST(Frozen, gradients_of_the_last_block_equal_full_training) {
  static Trainer<LastBlock> last_block;
  static Trainer<Everything> everything;
  static Everything::Parameters parameters;
  attune::Rng rng(2);
  last_block.initialize(attune::XavierUniform{}, rng);
  parameters.layer<0>() = kEmbed;
  parameters.layer<1>() = last_block.parameters().layer<1>();
  parameters.layer<3>() = last_block.parameters().layer<3>();
  everything.load(parameters);
  Everything::Input x;
  check::fill(x, rng);
  const int target[] = {0};
  EXPECT_EQ(last_block.accumulate(x, target), attune::Status::kOk);
  EXPECT_EQ(everything.accumulate(x, target), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(last_block.gradients().layer<1>(), everything.gradients().layer<1>()));
  EXPECT_TRUE(check::same_bits(last_block.gradients().layer<3>(), everything.gradients().layer<3>()));
}

namespace {

using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 3, .d_model = 4}>;
using Blocks = attune::Repeat<2, Encoder>;
using Deep = Sequential<Embed, Positions, Blocks, Mean, Head>;
constexpr Deep::Parameters kDeep = constants<Deep::Parameters>();
using Tuned = attune::BiasesAndNorms<Deep, kDeep>;

// What an encoder layer has beside weights, b_k apart: b_q, b_v, b_o, b_1, b_2, and w and b of two norms.
constexpr int kOfABlock = 3 * 4 + 5 + 4 + 2 * 8;

// Whether two sets have the same bits in the tensors that both have.
template <class Some, class All>
void expect_same_where_trained(const Some& some, const All& all) {
  int compared = 0;
  attune::for_each_tensor(
      [&compared](const attune::TensorPath& path, const auto& one, const auto& other) {
        SCOPED_TRACE(path.name);
        EXPECT_TRUE(check::same_bits(one, other));
        ++compared;
      },
      some, all);
  EXPECT_GT(compared, 0);
}

}  // namespace

TEST(BiasesAndNorms, are_all_that_is_in_ram) {
  constexpr int kTrained = 4 + 2 * kOfABlock + 2;
  static_assert(sizeof(Tuned::Parameters) == kTrained * sizeof(float));
  constexpr attune::MemoryReport all = Trainer<Deep>::memory(), tuned = Trainer<Tuned>::memory();
  static_assert(tuned.parameters == kTrained * sizeof(float) && tuned.gradients == tuned.parameters);
  static_assert(tuned.moments == all.moments - 2 * (all.parameters - tuned.parameters));
  static_assert(tuned.object() == sizeof(Trainer<Tuned>));
  // No tape of x̂·W: contexts of attention, the images in front of Embed, what the head reads.
  static_assert(tuned.tape == all.tape - 2 * sizeof(Encoder::Input) - sizeof(Encoder::Input) -
                                  sizeof(Encoder::Input) - sizeof(Mean::Output));
  EXPECT_EQ(attune::count_scalars(Tuned::Parameters{}), kTrained);
}

TEST(BiasesAndNorms, start_from_the_constants_and_have_the_gradients_of_everything) {
  static Trainer<Tuned> tuned;
  static Trainer<Deep> everything;
  attune::Rng rng(3);
  tuned.initialize(attune::XavierUniform{}, rng);
  everything.load(kDeep);
  expect_same_where_trained(tuned.parameters(), kDeep);
  Deep::Input x;
  check::fill(x, rng);
  const int target[] = {1};
  EXPECT_EQ(tuned.accumulate(x, target), attune::Status::kOk);
  EXPECT_EQ(everything.accumulate(x, target), attune::Status::kOk);
  expect_same_where_trained(tuned.gradients(), everything.gradients());
}

TEST(BiasesAndNorms, of_any_layer_start_from_the_constants) {
  using Attention = Encoder::SelfAttention;
  static constexpr Attention::Parameters kAttention = constants<Attention::Parameters>();
  static Trainer<Sequential<attune::BiasesAndNorms<Attention, kAttention>, Mean, Head>> inside;
  static attune::Trainer<attune::BiasesAndNorms<Attention, kAttention>> alone;
  static attune::Trainer<attune::BiasesAndNorms<Embed, kEmbed>> linear;
  inside.initialize(attune::XavierUniform{}, attune::Rng{3});
  alone.initialize(attune::MultiheadAttentionDefault{}, attune::Rng{3});
  linear.initialize(attune::LinearDefault{}, attune::Rng{3});
  expect_same_where_trained(inside.parameters().layer<0>(), kAttention);
  expect_same_where_trained(alone.parameters(), kAttention);
  expect_same_where_trained(linear.parameters(), kEmbed);
}

TEST(BiasesAndNorms, are_written_into_the_whole) {
  static Trainer<Tuned> tuned;
  static Deep::Parameters merged, expected;
  tuned.initialize(attune::XavierUniform{}, attune::Rng{3});
  Tuned::merge(tuned.parameters(), merged);
  expected = kDeep;
  EXPECT_TRUE(check::same_bits(merged, expected));
  Deep::Input x;
  attune::Rng rng(4);
  check::fill(x, rng);
  const int target[] = {0};
  EXPECT_TRUE(tuned.step(x, target, {.learning_rate = 0.01f}).ok());
  Tuned::merge(tuned.parameters(), merged);
  expect_same_where_trained(tuned.parameters(), merged);
  EXPECT_FALSE(check::same_bits(merged, expected));
}

TEST(BiasesAndNorms, learn) {
  static Trainer<Tuned> tuned;
  attune::Rng rng(3);
  tuned.initialize(attune::XavierUniform{}, rng);
  Deep::Input x;
  check::fill(x, rng);
  const int target[] = {0};
  const float before = tuned.step(x, target, {.learning_rate = 0.01f}).loss;
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(tuned.step(x, target, {.learning_rate = 0.01f}).ok());
  const float after = tuned.step(x, target, {.learning_rate = 0.01f}).loss;
  EXPECT_LT(after, 0.5f * before);

  // What was learned is all that inference needs beside the constants.
  Deep::Output y, predicted;
  static Tuned::InferenceScratch scratch;
  Tuned::forward(tuned.parameters(), x, y, scratch);
  EXPECT_EQ(tuned.predict(x, predicted), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(y, predicted));
}

TEST(BiasesAndNorms, without_biases_are_the_norms) {
  constexpr attune::EncoderLayerShape kNoBias{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2, .bias = false}, .d_ff = 5};
  using Bare = Sequential<attune::Linear<attune::LinearShape{3, 2, 4, false}>,
                          attune::Repeat<2, attune::EncoderLayer<kNoBias>>>;
  static constexpr Bare::Parameters kBare = constants<Bare::Parameters>();
  static_assert(sizeof(attune::BiasesAndNorms<Bare, kBare>::Parameters) == 2 * 2 * 4 * sizeof(float));
  static attune::Trainer<attune::BiasesAndNorms<Bare, kBare>> tuned;
  static attune::Trainer<Bare> everything;
  attune::Rng rng(5);
  tuned.initialize(attune::XavierUniform{}, rng);
  everything.load(kBare);
  Bare::Input x;
  Bare::Output target;
  check::fill(x, rng);
  check::fill(target, rng);
  EXPECT_EQ(tuned.accumulate(x, target), attune::Status::kOk);
  EXPECT_EQ(everything.accumulate(x, target), attune::Status::kOk);
  expect_same_where_trained(tuned.gradients(), everything.gradients());
}

TEST(Frozen, after_a_trained_layer_passes_its_gradient_on) {
  static constexpr Encoder::Parameters kMiddle = constants<Encoder::Parameters>();
  using Model = Sequential<Embed, attune::Residual<attune::Frozen<Encoder, kMiddle>>, Mean, Head>;
  using Same = Sequential<Embed, attune::Residual<Encoder>, Mean, Head>;
  static Trainer<Model> trainer;
  static Trainer<Same> everything;
  static Same::Parameters parameters;
  attune::Rng rng(6);
  trainer.initialize(attune::XavierUniform{}, rng);
  parameters.layer<0>() = trainer.parameters().layer<0>();
  parameters.layer<1>() = kMiddle;
  parameters.layer<3>() = trainer.parameters().layer<3>();
  everything.load(parameters);
  static_assert(Trainer<Model>::memory().tape < Trainer<Same>::memory().tape);
  Model::Input x;
  check::fill(x, rng);
  const int target[] = {1};
  EXPECT_EQ(trainer.accumulate(x, target), attune::Status::kOk);
  EXPECT_EQ(everything.accumulate(x, target), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(trainer.gradients().layer<0>(), everything.gradients().layer<0>()));
  EXPECT_TRUE(check::same_bits(trainer.gradients().layer<3>(), everything.gradients().layer<3>()));
}

TEST(Frozen, front_layers_do_not_drop) {
  constexpr attune::EncoderLayerShape kDrops{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2, .dropout = 0.5}, .d_ff = 5};
  using Dropping = attune::EncoderLayer<kDrops>;
  static constexpr Dropping::Parameters kDropping = constants<Dropping::Parameters>();
  using Model = Sequential<attune::Frozen<Dropping, kDropping>, Mean, Head>;
  static_assert(Trainer<Model>::memory().tape ==
                3 /* of padding */ + 1 + sizeof(Mean::Output) + sizeof(Head::Output));
  static Trainer<Model> trainer;
  attune::Rng rng(7);
  trainer.initialize(attune::XavierUniform{}, rng);
  Model::Input x;
  check::fill(x, rng);
  const int target[] = {1};
  EXPECT_EQ(trainer.accumulate(x, target), attune::Status::kOk);
  const Head::Parameters first = trainer.gradients().layer<2>();
  trainer.discard();
  EXPECT_EQ(trainer.accumulate(x, target), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(first, trainer.gradients().layer<2>()));
}

TEST(Frozen, after_dropout_sees_dropped_elements_anew_in_every_sequence) {
  constexpr attune::EncoderLayerShape kDrops{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2, .dropout = 0.5}, .d_ff = 5};
  using Dropping = attune::EncoderLayer<kDrops>;
  static constexpr Dropping::Parameters kMiddle = constants<Dropping::Parameters>();
  using Drop = attune::Dropout<attune::DropoutShape{.rows = 3, .d_model = 4, .probability = 0.5}>;
  // The same layers, whether the first of them are a model of their own or not.
  using Flat = Sequential<Drop, attune::Frozen<Dropping, kMiddle>, Mean, Head>;
  using Nested = Sequential<Sequential<Drop, attune::Frozen<Dropping, kMiddle>>, Mean, Head>;
  static Trainer<Flat> flat;
  static Trainer<Nested> nested;
  flat.initialize(attune::XavierUniform{}, attune::Rng{8});
  nested.initialize(attune::XavierUniform{}, attune::Rng{8});
  attune::Rng rng(9);
  Flat::Input x;
  check::fill(x, rng);
  const int target[] = {1};
  float before = 0;
  for (int i = 0; i < 3; ++i) {
    const auto result = flat.step(x, target, {.learning_rate = 0});
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.loss, nested.step(x, target, {.learning_rate = 0}).loss);
    EXPECT_NE(result.loss, before);
    before = result.loss;
  }
}

namespace {

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}>;
constexpr Attention::Parameters kAttention = constants<Attention::Parameters>();
using Adapted =
    attune::Adapted<Attention, kAttention,
                    attune::LowRank{.rank = 2, .roles = attune::Role::kQueries, .biases_and_norms = true}>;
Adapted::Parameters adapted;   // as if trained before
Attention::Parameters merged;  // the same without factors

}  // namespace

TEST(Frozen, may_hold_factors_that_were_trained_before) {
  attune::Rng rng(4);
  check::fill_set(adapted, rng);
  Adapted::merge(adapted, merged);
  static attune::Trainer<Sequential<Embed, attune::Frozen<Adapted, adapted>>> trainer;
  static attune::Trainer<Sequential<Embed, attune::Frozen<Attention, merged>>> of_merged;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  of_merged.initialize(attune::XavierUniform{}, attune::Rng{1});
  Embed::Input x;
  Attention::Output target;
  check::fill(x, rng);
  check::fill(target, rng);
  ASSERT_TRUE(trainer.accumulate(x, target).ok());
  ASSERT_TRUE(of_merged.accumulate(x, target).ok());
  const auto& gradients = trainer.gradients().layer<0>();
  EXPECT_LE(check::max_difference(gradients.weight, of_merged.gradients().layer<0>().weight), 1e-5);
  EXPECT_GT(gradients.weight(0, 0) * gradients.weight(0, 0), 0);
}
