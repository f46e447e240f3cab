// RepeatLastToken: order, gradients, and plans of training.
#include <attune/layers/repeat_last_token.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

template <class Scalar = float>
using Longer = RepeatLastToken<TokenShape{.seq_len = 3, .d_model = 2, .tokens = 2}, Scalar>;

}  // namespace

TEST(RepeatLastToken, follows_the_sequence_so_many_times) {
  check::Problem<Longer<>> a(1);
  a.x = {{1, 2, 3, 4, 5, 6}};
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, Longer<>::Output{{1, 2, 3, 4, 5, 6, 5, 6, 5, 6}}));
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, Longer<>::Output{{1, 2, 3, 4, 5, 6, 5, 6, 5, 6}}));
  a.dy = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, Longer<>::Input{{1, 2, 3, 4, 21, 24}}));
}

TEST(RepeatLastToken, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Longer<double>>(-1, 1);
}

TEST(RepeatLastToken, has_the_same_bits_in_every_plan) { check::expect_same_bits_in_every_plan<Longer<>>(); }
