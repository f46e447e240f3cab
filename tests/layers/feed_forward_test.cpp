#include <attune/layers/feed_forward.hpp>

#include "check.hpp"
#include "problem.hpp"

namespace {

using attune::Activation;
using attune::FeedForwardShape;

constexpr FeedForwardShape kShape{.rows = 3, .d_model = 4, .d_ff = 6, .activation = Activation::kGelu};
constexpr FeedForwardShape kDropped{
    .rows = 3, .d_model = 4, .d_ff = 6, .activation = Activation::kGelu, .dropout = 0.5};
using Layer = attune::FeedForward<kShape>;
using Gated = attune::SwiGlu<kShape>;
using WithDropout = attune::FeedForward<kDropped>;

using check::Problem;

}  // namespace

// Gradients: transformer_gradients_test.cpp.

// Of a shape that depends on a template's parameter.
template <int rows>
constexpr attune::FeedForwardShape kOfRows{.rows = rows, .d_model = 2, .d_ff = 3};
template <int rows>
using GatedOfRows = attune::SwiGlu<kOfRows<rows>>;
static_assert(std::is_same_v<GatedOfRows<4>, attune::SwiGlu<attune::FeedForwardShape{4, 2, 3}>>);

TEST(FeedForward, tapes_the_hidden_tokens_alone) {
  static_assert(sizeof(Layer::Tape) == 3 * 6 * sizeof(float));
  static_assert(sizeof(Layer::Scratch) == 3 * 6 * sizeof(float));
  static_assert(sizeof(Gated::Tape) == 2 * 3 * 6 * sizeof(float));
  static_assert(sizeof(WithDropout::Tape) == 3 * 6 * sizeof(float) + 8);
  static_assert(attune::count_scalars(Gated::Parameters{}) == 2 * (4 * 6 + 6) + 6 * 4 + 4);
}

TEST(FeedForward, inference_works_in_place) {
  Problem<Layer> a(2);
  Problem<Gated> gated(2);
  a.forward();
  gated.forward();
  Layer::forward(a.parameters, a.x, a.x, a.inference);
  Gated::forward(gated.parameters, gated.x, gated.x, gated.inference);
  EXPECT_TRUE(check::same_bits(a.x, a.y));
  EXPECT_TRUE(check::same_bits(gated.x, gated.y));
}

TEST(FeedForward, gradient_of_the_input_may_replace_the_input_or_dy) {
  Problem<Layer> a(3), over_x(3), over_dy(3);
  for (auto* problem : {&a, &over_x, &over_dy}) problem->forward();
  a.backward();
  Layer::backward(over_x.parameters, over_x.x, over_x.tape, over_x.dy, over_x.x, over_x.gradients,
                  over_x.scratch);
  Layer::backward(over_dy.parameters, over_dy.x, over_dy.tape, over_dy.dy, over_dy.dy, over_dy.gradients,
                  over_dy.scratch);
  EXPECT_TRUE(check::same_bits(a.dx, over_x.x));
  EXPECT_TRUE(check::same_bits(a.dx, over_dy.dy));
  EXPECT_TRUE(check::same_bits(a.gradients, over_x.gradients));
  EXPECT_TRUE(check::same_bits(a.gradients, over_dy.gradients));
}

TEST(FeedForward, drops_hidden_features_in_training_only) {
  Problem<Layer> plain(4);
  Problem<WithDropout> a(4);
  plain.forward();
  a.forward();
  EXPECT_FALSE(check::same_bits(plain.y, a.y));
  const auto position = a.tape.dropout.position;
  a.backward();
  EXPECT_NE(a.tape.dropout.position, position);
  WithDropout::forward(a.parameters, a.x, a.y, a.inference);
  EXPECT_TRUE(check::same_bits(plain.y, a.y));
}

TEST(FeedForward, initializes_both_layers) {
  Problem<Layer> a(5);
  attune::Rng rng(6);
  attune::initialize(a.parameters, attune::LinearDefault{}, rng);
  for (const float value : a.parameters.linear1.weight.values) EXPECT_TRUE(value >= -0.5f && value <= 0.5f);
  const float bound = attune::kernels::square_root(1.0f / 6);
  for (const float value : a.parameters.linear2.weight.values) EXPECT_TRUE(value >= -bound && value <= bound);
}
