// A class token: its place, its gradients, in a model with every plan, and from flash.
#include <attune/layers/class_token.hpp>

#include <cstring>

#include <attune/models/frozen.hpp>
#include <attune/training/check_gradients.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "layers/token_models.hpp"

namespace {

using namespace attune;

constexpr TokenShape kShape{.seq_len = 3, .d_model = 4};
using Token = ClassToken<kShape>;
template <class Scalar>
using Model = check::TokenModel<ClassToken<kShape, Scalar>>;
using Small = Model<float>;

template <class Trainer>
std::uint32_t train() {
  static Trainer trainer;
  Rng rng(2);
  trainer.initialize(XavierUniform{}, rng);
  static typename Small::Input x;
  for (int step = 0; step < 12; ++step) {
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    EXPECT_TRUE(trainer.step(x, step % 2, {.learning_rate = 1e-2f}).ok());
  }
  bool moved = false;
  for (const float value : trainer.parameters().template layer<1>().weight.values)
    moved = moved || value != 0;
  EXPECT_TRUE(moved);
  return hash_bits(trainer.parameters());
}

Small::Parameters constants;

}  // namespace

TEST(ClassToken, stands_in_front) {
  Rng rng(1);
  Token::Parameters parameters, gradients{};
  Token::Input x, dx;
  Token::Output y;
  Token::Tape tape;
  Token::Scratch scratch;
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  Token::forward(parameters, x, y, tape, scratch);
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(y(0, j), parameters.weight(0, j));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y(i + 1, j), x(i, j));
  }
  Token::backward(parameters, x, tape, y, dx, gradients, scratch);
  EXPECT_TRUE(check::same_bits(dx, x));
  EXPECT_TRUE(check::same_bits(gradients.weight, parameters.weight));
  Token::backward(parameters, x, tape, y, NoGradient{}, gradients, scratch);
  for (int j = 0; j < 4; ++j) EXPECT_EQ(gradients.weight(0, j), 2 * parameters.weight(0, j));
}

TEST(ClassToken, has_right_gradients_in_a_model) {
  using Doubles = Model<double>;
  const GradientCheck check = check_gradients<Doubles>();
  EXPECT_TRUE(check.ok()) << check.tensor;
}

TEST(ClassToken, trains_to_the_same_bits_in_every_plan) {
  const std::uint32_t plain = train<Trainer<Small, CrossEntropy<>>>();
  EXPECT_EQ((train<Trainer<Small, CrossEntropy<>, AdamW, 1, UpdateInBackward>>()), plain);
}

TEST(ClassToken, is_a_constant_beside_a_trained_head) {
  Rng rng(5);
  constants.initialize(XavierUniform{}, rng);
  check::fill_set(constants, rng);
  using Tuned = BiasesAndNorms<Small, constants>;  // to which the token belongs
  static Trainer<Tuned, CrossEntropy<>> trainer;
  trainer.initialize(XavierUniform{}, Rng{6});
  EXPECT_TRUE(trainer.step(Small::Input{}, 1, {.learning_rate = 1e-2f}).ok());
}
