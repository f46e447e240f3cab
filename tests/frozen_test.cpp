#include <attune/frozen.hpp>

#include <attune/cross_entropy.hpp>
#include <attune/encoder_layer.hpp>
#include <attune/pooling.hpp>
#include <attune/sequential.hpp>
#include <attune/trainer.hpp>

#include "check.hpp"

namespace {

using attune::Sequential;

using Embed = attune::Linear<attune::LinearShape{.rows = 3, .d_in = 2, .d_out = 4}>;
using Encoder =
    attune::EncoderLayer<attune::EncoderLayerShape{.seq_len = 3, .d_model = 4, .num_heads = 2, .d_ff = 5}>;
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

TEST(Frozen, trains_the_rest_as_if_nothing_else_moved) {
  static Trainer<HeadOnly> head_only;
  static Trainer<Everything> everything;
  static Everything::Parameters parameters;
  attune::Rng rng(2);
  head_only.initialise(attune::XavierUniform{}, rng);
  parameters.layer<0>() = kBackbone.layer<0>();
  parameters.layer<1>() = kBackbone.layer<1>();
  parameters.layer<3>() = head_only.parameters().layer<1>();
  everything.load(parameters);
  Everything::Input x;
  check::fill(x, rng);
  const int target[] = {1};
  const float before = head_only.step(x, target, {.learning_rate = 0.1f});
  EXPECT_EQ(before, everything.step(x, target, {.learning_rate = 0.1f}).loss);
  // The first step moves the head alike; then everything's backbone has moved, too.
  EXPECT_TRUE(check::same_bits(head_only.parameters().layer<1>(), everything.parameters().layer<3>()));
  const float after = head_only.step(x, target, {.learning_rate = 0.1f});
  EXPECT_LT(after, before);
  EXPECT_LT(everything.step(x, target, {.learning_rate = 0.1f}).loss, after);
}

TEST(Frozen, gradients_of_the_last_block_are_those_of_everything) {
  static Trainer<LastBlock> last_block;
  static Trainer<Everything> everything;
  static Everything::Parameters parameters;
  attune::Rng rng(2);
  last_block.initialise(attune::XavierUniform{}, rng);
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
