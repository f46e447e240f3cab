#include <attune/layers/layer_norm.hpp>

#include <attune/models/encoder_layer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using attune::NormShape;

constexpr NormShape kShape{.rows = 3, .d_model = 7};
using Layer = attune::LayerNorm<kShape>;
using Plain = attune::LayerNorm<NormShape{.rows = 3, .d_model = 7, .weight = false}>;
using Unbiased = attune::LayerNorm<NormShape{.rows = 3, .d_model = 7, .bias = false}>;
using Rms = attune::RmsNorm<kShape>;

// Features from −3 to 5.
template <class Layer>
struct Problem : check::Problem<Layer> {
  explicit Problem(std::uint64_t seed) : check::Problem<Layer>(seed, -3, 5) {}
};

}  // namespace

// Values: vectors of PyTorch. Gradients: transformer_gradients_test.cpp.

TEST(LayerNorm, a_token_of_equal_features_becomes_the_bias) {
  Problem<Layer> a(3);
  for (int j = 0; j < 7; ++j) a.x(1, j) = 3.3f;
  a.forward();
  for (int j = 0; j < 7; ++j) EXPECT_EQ(a.y(1, j), a.parameters.bias.values[j]);
}

TEST(LayerNorm, one_feature_is_always_the_bias_and_has_no_gradient) {
  using Single = attune::LayerNorm<NormShape{.rows = 2, .d_model = 1}>;
  const Single::Parameters parameters{.weight = {{2}}, .bias = {{0.25f}}};
  Single::Parameters gradients{};
  const Single::Input x{{1e6f, -3}}, dy{{5, 7}};
  Single::Output y, dx;
  Single::Tape tape;
  Single::Scratch scratch;
  Single::forward(parameters, x, y, tape, scratch);
  Single::backward(parameters, x, tape, dy, dx, gradients, scratch);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(y.values[i], 0.25f);
    EXPECT_EQ(dx.values[i], 0.0f);
  }
  EXPECT_EQ(gradients.weight.values[0], 0.0f);
  EXPECT_EQ(gradients.bias.values[0], 12.0f);
}

TEST(LayerNorm, a_large_common_offset_costs_nothing) {
  Problem<Layer> a(4), shifted(4);
  for (float& value : shifted.x.values) value += 4096;
  for (int i = 0; i < a.x.size; ++i) a.x.values[i] = shifted.x.values[i] - 4096;  // the same rounding of x
  a.forward();
  shifted.forward();
  a.backward();
  shifted.backward();
  EXPECT_TRUE(check::same_bits(a.y, shifted.y));
  EXPECT_TRUE(check::same_bits(a.dx, shifted.dx));
  EXPECT_TRUE(check::same_bits(a.gradients, shifted.gradients));
}

TEST(LayerNorm, the_tape_gives_y_again) {
  static_assert(sizeof(Layer::Tape) == 2 * 3 * sizeof(float));
  static_assert(sizeof(Rms::Tape) == 3 * sizeof(float));
  Problem<Layer> a(5);
  a.forward();
  Layer::Output again;
  Layer::recompute(a.parameters, a.x, a.tape, again);
  EXPECT_TRUE(check::same_bits(a.y, again));
}

TEST(LayerNorm, works_in_place) {
  Problem<Layer> a(6);
  a.expect_in_place();
  Layer::Parameters gradients{};
  Layer::Input over_dy = a.dy;
  Layer::backward(a.parameters, a.x, a.tape, over_dy, over_dy, gradients, a.scratch);
  EXPECT_TRUE(check::same_bits(a.dx, over_dy));
  EXPECT_TRUE(check::same_bits(a.gradients, gradients));
}

TEST(LayerNorm, starts_as_the_identity_of_normalized_tokens) {
  Problem<Plain> plain(7);
  Problem<Unbiased> a(7);
  attune::Rng rng(1);
  a.parameters.initialize(0, rng);
  static_assert(sizeof(a.parameters) == 7 * sizeof(float));
  a.x = plain.x;
  a.forward();
  plain.forward();
  EXPECT_TRUE(check::same_bits(a.y, plain.y));
}

TEST(DeviationNorm, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<attune::DeviationNorm<NormShape{3, 7, 1e-6}, double>>(-1, 1);
  check::check_layer_gradients<attune::DeviationNorm<NormShape{3, 7, 0.5}, double>>(-1, 1);
  check::check_layer_gradients<attune::DeviationNorm<NormShape{2, 5, 0, false}, double>>(-1, 1);
}

TEST(DeviationNorm, a_token_of_equal_features_becomes_the_bias_and_has_a_gradient) {
  check::Problem<attune::DeviationNorm<NormShape{.rows = 1, .d_model = 4}>> a(1);
  a.x = {{7, 7, 7, 7}};
  a.forward();
  a.backward();
  EXPECT_TRUE(check::same_bits(a.y, a.parameters.bias));
  for (const float value : a.dx.values) EXPECT_FALSE(check::is_nan(value));
}

TEST(DeviationNorm, works_in_place) {
  check::Problem<attune::DeviationNorm<NormShape{.rows = 3, .d_model = 6}>>(1).expect_in_place();
}

TEST(DeviationNorm, is_a_norm_of_encoder_layers) {
  using Block = attune::EncoderLayerOf<
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, double>,
      attune::FeedForward<attune::FeedForwardShape{.rows = 3, .d_model = 4, .d_ff = 5}, double>,
      attune::DeviationNorm<NormShape{3, 4, 1e-6}, double>,
      attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
  check::check_layer_gradients<Block>(-1, 1);
}
