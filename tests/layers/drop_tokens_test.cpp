// DropTokens: the tokens that stay, and their gradients.
#include <attune/layers/drop_tokens.hpp>

#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr TokenShape kShape{.seq_len = 5, .d_model = 3, .tokens = 2};

}  // namespace

TEST(DropTokens, leaves_out_the_first) {
  check::Problem<DropTokens<kShape>> a(1);
  a.infer();
  const auto inferred = a.y;
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, inferred));
  for (int i = 0; i < a.y.size; ++i) EXPECT_EQ(a.y.values[i], a.x.values[6 + i]);
  a.backward();
  for (int i = 0; i < a.x.size; ++i) EXPECT_EQ(a.dx.values[i], i < 6 ? 0 : a.dy.values[i - 6]);
}

TEST(DropTokens, ends_a_prefix) {
  using Prefix = PrefixTokens<TokenShape{.seq_len = 3, .d_model = 3, .tokens = 2}>;
  check::Problem<Sequential<Prefix, DropTokens<kShape>>> a(1);
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, a.x));
}

TEST(DropTokens, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<DropTokens<kShape, double>>(-1, 1);
}
