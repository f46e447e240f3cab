// A row added to every token: values, gradients, in a model with plans, from flash, on a stream.
#include <attune/layers/token_type.hpp>

#include <attune/models/frozen.hpp>
#include <attune/training/check_gradients.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "layers/token_models.hpp"
#include "stream_cases.hpp"

namespace {

using namespace attune;

constexpr TokenTypeShape kShape{.seq_len = 4, .d_model = 4, .types = 3, .type = 1};
using Type = TokenType<kShape>;
template <class Scalar>
using Model = check::TokenModel<TokenType<kShape, Scalar>>;
using Small = Model<float>;

template <class Trainer>
std::uint32_t train() {
  static Trainer trainer;
  Rng rng(2);
  trainer.initialize(XavierUniform{}, rng);
  const auto before = trainer.parameters().template layer<1>().weight;
  static typename Small::Input x;
  for (int step = 0; step < 12; ++step) {
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    EXPECT_TRUE(trainer.step(x, step % 2, {.learning_rate = 1e-2f, .weight_decay = 0}).ok());
  }
  const auto& after = trainer.parameters().template layer<1>().weight;
  for (int j = 0; j < 4; ++j) {
    EXPECT_NE(after(1, j), before(1, j));
    EXPECT_EQ(after(0, j), before(0, j));
    EXPECT_EQ(after(2, j), before(2, j));
  }
  return hash_bits(trainer.parameters());
}

Small::Parameters constants;

}  // namespace

TEST(TokenType, adds_its_row_to_every_token) {
  Rng rng(1);
  Type::Parameters parameters, gradients{};
  Type::Input x, dx;
  Type::Output y;
  Type::Tape tape;
  Type::Scratch scratch;
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  Type::forward(parameters, x, y, tape, scratch);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(y(i, j), x(i, j) + parameters.weight(1, j));
  }
  Type::Output in_place = x;
  Type::forward(parameters, in_place, in_place, tape, scratch);
  EXPECT_TRUE(check::same_bits(in_place, y));
  Type::backward(parameters, x, tape, y, dx, gradients, scratch);
  EXPECT_TRUE(check::same_bits(dx, y));
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(gradients.weight(1, j), ((y(0, j) + y(1, j)) + y(2, j)) + y(3, j));
    EXPECT_EQ(gradients.weight(0, j), 0.0f);
  }
}

TEST(TokenType, has_right_gradients) {
  const GradientCheck alone = check_gradients<TokenType<kShape, double>>();
  EXPECT_TRUE(alone.ok()) << alone.tensor;
  const GradientCheck check = check_gradients<Model<double>>();
  EXPECT_TRUE(check.ok()) << check.tensor;
}

TEST(TokenType, trains_to_the_same_bits_in_every_plan) {
  const std::uint32_t plain = train<Trainer<Small, CrossEntropy<>>>();
  EXPECT_EQ((train<Trainer<Small, CrossEntropy<>, AdamW, 1, UpdateInBackward>>()), plain);
}

TEST(TokenType, is_a_constant_beside_a_trained_head) {
  Rng rng(5);
  constants.initialize(XavierUniform{}, rng);
  check::fill_set(constants, rng);
  using Tuned = BiasesAndNorms<Small, constants>;
  static Trainer<Tuned, CrossEntropy<>> trainer;
  trainer.initialize(XavierUniform{}, Rng{6});
  EXPECT_TRUE(trainer.step(Small::Input{}, 1, {.learning_rate = 1e-2f}).ok());
}

TEST(TokenType, streams) {
  using Streamed = Sequential<Linear<LinearShape{4, 2, 4}>, Type>;
  Rng rng(7);
  static Streamed::Parameters parameters;
  check::fill_set(parameters, rng);
  static Streamed::Input x;
  check::fill(x, rng);
  static Streamed::Output y;
  static Streamed::InferenceScratch scratch;
  infer<Streamed>(parameters, x, y, scratch);
  check::expect_stream<Streamed, CacheShape{.capacity = 4}, 3>(parameters, x, y);
}
