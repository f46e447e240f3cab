// A class token: its place, its gradients, in a model with every plan, and from flash.
#include <attune/layers/class_token.hpp>

#include <cstring>

#include "check.hpp"
#include "layers/token_models.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr TokenShape kShape{.seq_len = 3, .d_model = 4};
using Token = ClassToken<kShape>;
template <class Scalar>
using Model = check::TokenModel<ClassToken<kShape, Scalar>>;
using Small = Model<float>;

}  // namespace

TEST(ClassToken, comes_first) {
  check::Problem<Token> a(1);
  a.forward();
  auto& [parameters, gradients, x, dx, y, dy, tape, scratch, inference] = a;
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
  check::expect_same_tokens_in_every_plan<Small>([](const auto& before, const auto& after) {
    for (int j = 0; j < 4; ++j) EXPECT_NE(after(0, j), before(0, j));
  });
}

TEST(ClassToken, can_be_constant_next_to_a_trained_head) {
  check::expect_constant_tokens_beside_a_trained_head<Small>();
}
