// The trained factor of scores, and cosines as scores. Values: vectors of PyTorch. Gradients:
// layer_gradients_test.cpp.
#include <attune/attention/score_scale.hpp>

#include <cmath>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/training/check_gradients.hpp>

#include "check.hpp"

namespace {

using attune::AttentionShape;
using attune::QueryKeyNorm;
using attune::ScoreScale;

constexpr int kHeads = 2, kWidth = 8;
constexpr AttentionShape kPlain{.seq_len = 5, .d_model = kWidth, .num_heads = kHeads};
constexpr AttentionShape with(ScoreScale scale, int count = kHeads, QueryKeyNorm norm = QueryKeyNorm::kNone) {
  AttentionShape shape = kPlain;
  shape.score_scale = scale;
  shape.score_scales = count;
  shape.query_key_norm = norm;
  return shape;
}

}  // namespace

TEST(ScoreScale, is_the_function_of_its_name_with_its_slope) {
  const auto expect = []<ScoreScale kind>(double t, double value, double slope) {
    const auto factor = attune::detail::score_factor<kind>(t);
    EXPECT_NEAR(factor.value, value, 1e-13 * std::abs(value));
    EXPECT_NEAR(factor.slope, slope, 1e-13 * std::abs(slope));
  };
  expect.operator()<ScoreScale::kFactor>(-3, -3, 1);
  expect.operator()<ScoreScale::kInverse>(-4, -0.25, -0.0625);
  expect.operator()<ScoreScale::kExponential>(-2, std::exp(-2.0), std::exp(-2.0));
  expect.operator()<ScoreScale::kExponential>(5, std::exp(5.0), std::exp(5.0));
  expect.operator()<ScoreScale::kClampedExponential>(4.5, std::exp(4.5), std::exp(4.5));
  expect.operator()<ScoreScale::kClampedExponential>(4.7, 100, 0);
  expect.operator()<ScoreScale::kClampedExponential>(700, 100, 0);
}

TEST(ScoreScale, adds_once_to_a_gradient_of_several_heads) {
  const auto expect = []<int count>() {
    constexpr AttentionShape kShape = with(ScoreScale::kExponential, count);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // one rounding may hide another
      const attune::GradientCheck check =
          attune::check_gradients<attune::MultiHeadAttention<kShape, double>>({.seed = seed});
      EXPECT_FALSE(check.adds_again) << seed;
      EXPECT_LT(check.error, 1e-7);
    }
  };
  expect.operator()<1>();
  expect.operator()<kHeads>();
}

TEST(ScoreScale, begins_with_a_factor_of_one_and_of_ten_for_cosines) {
  const auto initial = []<AttentionShape shape>() {
    typename attune::MultiHeadAttention<shape>::Parameters parameters;
    attune::Rng rng(1);
    attune::initialize(parameters, attune::XavierUniform{}, rng);
    return attune::detail::score_factor<shape.score_scale>(double(parameters.scores.score_scale.values[0]))
        .value;
  };
  constexpr auto kUnit = QueryKeyNorm::kUnitLength;
  EXPECT_EQ(initial.operator()<with(ScoreScale::kFactor)>(), 1);
  EXPECT_EQ(initial.operator()<with(ScoreScale::kInverse)>(), 1);
  EXPECT_EQ(initial.operator()<with(ScoreScale::kExponential)>(), 1);
  EXPECT_EQ((initial.operator()<with(ScoreScale::kFactor, 1, kUnit)>()), 10);
  EXPECT_NEAR((initial.operator()<with(ScoreScale::kInverse, 1, kUnit)>()), 10, 1e-5);
  EXPECT_NEAR((initial.operator()<with(ScoreScale::kClampedExponential, 1, kUnit)>()), 10, 1e-5);
}

TEST(ScoreScale, keeps_queries_for_its_gradient_alone) {
  using Layer = attune::MultiHeadAttention<with(ScoreScale::kExponential)>;
  using Plain = attune::MultiHeadAttention<kPlain>;
  static_assert(sizeof(Layer::Tape) == sizeof(Plain::Tape) + sizeof(float) * 5 * kWidth);
  static_assert(sizeof(Layer::InferenceScratch) == sizeof(Plain::InferenceScratch));
  static_assert(sizeof(Layer::Parameters) == sizeof(Plain::Parameters) + sizeof(float) * kHeads);
}
