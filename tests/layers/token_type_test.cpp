// A row added to every token: values, gradients, and constants.
#include <attune/layers/token_type.hpp>

#include "check.hpp"
#include "layers/token_models.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr TokenTypeShape kShape{.seq_len = 4, .d_model = 4, .types = 3, .type = 1};
using Type = TokenType<kShape>;
template <class Scalar>
using Model = check::TokenModel<TokenType<kShape, Scalar>>;
using Small = Model<float>;

}  // namespace

TEST(TokenType, adds_its_row_to_every_token) {
  check::Problem<Type> a(1);
  a.forward();
  auto& [parameters, gradients, x, dx, y, dy, tape, scratch, inference] = a;
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

TEST(TokenType, can_be_constant_next_to_a_trained_head) {
  check::expect_constant_tokens_beside_a_trained_head<Small>();
}
