// A class token: its place, its gradients, and constants.
#include <attune/layers/class_token.hpp>

#include <cstring>

#include <attune/exchange/pytorch_names.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "layers/token_models.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr TokenShape kShape{.seq_len = 3, .d_model = 4};
using Token = ClassToken<kShape>;
template <class Scalar>
using Model = check::TokenModel<ClassToken<kShape, Scalar>>;
using Small = Model<float>;
using WithRegisters = check::TokenModel<PrefixTokens<TokenShape{.seq_len = 1, .d_model = 4, .tokens = 3}>>;

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

TEST(ClassToken, may_be_several_tokens) {
  using Registers = PrefixTokens<TokenShape{.seq_len = 2, .d_model = 3, .tokens = 10}>;
  check::Problem<Registers> a(1);
  a.forward();
  for (int i = 0; i < a.parameters.weight.size; ++i) EXPECT_EQ(a.y.values[i], a.parameters.weight.values[i]);
  for (int i = 0; i < a.x.size; ++i) EXPECT_EQ(a.y.values[30 + i], a.x.values[i]);
  a.backward();
  for (int i = 0; i < 30; ++i) EXPECT_EQ(a.gradients.weight.values[i], a.dy.values[i]);
  for (int i = 0; i < a.dx.size; ++i) EXPECT_EQ(a.dx.values[i], a.dy.values[30 + i]);
  check::expect_tensors<PyTorchModule<Sequential<Registers>, "reg_token">>("reg_token[10,3]");
}

TEST(ClassToken, has_right_gradients_in_a_model) {
  using Doubles = Model<double>;
  const GradientCheck check = check_gradients<Doubles>();
  EXPECT_TRUE(check.ok()) << check.tensor;
}

TEST(ClassToken, can_be_constant_next_to_a_trained_head) {
  check::expect_constant_tokens_beside_a_trained_head<Small>();
  check::expect_constant_tokens_beside_a_trained_head<WithRegisters>();
}
