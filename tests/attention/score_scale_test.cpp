// The trained factor of scores, and cosines as scores. Gradients: layer_gradients_test.cpp.
#include <attune/attention/score_scale.hpp>

#include <cmath>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/models/frozen.hpp>
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

template <AttentionShape shape>
struct Attention {
  using Layer = attune::MultiHeadAttention<shape>;
  typename Layer::Parameters parameters;
  typename Layer::Input x;
  typename Layer::Output y, inferred;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  Attention() {
    attune::Rng rng(3);
    check::fill(x, rng);
    check::fill_set(parameters, rng);
  }
  void forward() {
    attune::forward<Layer>(parameters, x, y, tape, scratch);
    attune::infer<Layer>(parameters, x, inferred, inference);
    EXPECT_TRUE(check::same_bits(y, inferred));
  }
};

// Powers of two as factors have the bits of queries that are as many times as large.
template <ScoreScale scale, int count>
void expect_factors(const float (&parameters)[count], const float (&factors)[kHeads]) {
  static Attention<with(scale, count)> scaled;
  static Attention<kPlain> plain;
  plain.x = scaled.x;
  plain.parameters.query = scaled.parameters.query;
  plain.parameters.key = scaled.parameters.key;
  plain.parameters.value = scaled.parameters.value;
  plain.parameters.output = scaled.parameters.output;
  for (int i = 0; i < count; ++i) scaled.parameters.scores.score_scale.values[i] = parameters[i];
  for (int j = 0; j < kWidth; ++j) {
    const float factor = factors[j / (kWidth / kHeads)];
    for (int i = 0; i < kWidth; ++i) plain.parameters.query.weight(i, j) *= factor;
    plain.parameters.query.bias.values[j] *= factor;
  }
  scaled.forward();
  plain.forward();
  EXPECT_TRUE(check::same_bits(scaled.y, plain.y));
}

}  // namespace

TEST(ScoreScale, multiplies_the_scores_of_all_heads_or_of_each) {
  expect_factors<ScoreScale::kFactor>({0.5f, -4.0f}, {0.5f, -4.0f});
  expect_factors<ScoreScale::kFactor>({2.0f}, {2.0f, 2.0f});
  expect_factors<ScoreScale::kInverse>({0.5f, 8.0f}, {2.0f, 0.125f});
  expect_factors<ScoreScale::kExponential>({0.0f}, {1.0f, 1.0f});
}

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

TEST(ScoreScale, of_cosines_is_all_that_scores_depend_on_beside_angles) {
  static Attention<with(ScoreScale::kFactor, 1, QueryKeyNorm::kUnitLength)> a;
  a.parameters.scores.score_scale.values[0] = 3;
  a.parameters.query.bias.set_zero();
  a.parameters.key.bias.set_zero();
  for (float& weight : a.parameters.query.weight.values) weight *= 100;
  for (float& weight : a.parameters.key.weight.values) weight *= 100;
  a.forward();
  const auto y = a.y;
  for (float& weight : a.parameters.query.weight.values) weight *= 7;
  a.forward();
  for (int i = 0; i < y.size; ++i) EXPECT_NEAR(a.y.values[i], y.values[i], 1e-5);
  // P of a head from the cosines of its queries and keys.
  constexpr int kDk = kWidth / kHeads;
  const auto dot = [](const auto& p, int i, const auto& q, int j) {
    double sum = 0;
    for (int k = 0; k < kDk; ++k) sum += double(p(i, k)) * double(q(j, k));
    return sum;
  };
  const auto project = [](const auto& x, const auto& weight, auto& to) {
    for (int i = 0; i < to.rows; ++i) {
      for (int j = 0; j < to.cols; ++j) {
        to(i, j) = 0;
        for (int k = 0; k < kWidth; ++k) to(i, j) += x(i, k) * weight(k, j);
      }
    }
  };
  attune::Tensor<float, 5, kDk> query, key;  // of head 0
  project(a.x, a.parameters.query.weight, query);
  project(a.x, a.parameters.key.weight, key);
  for (int i = 0; i < 5; ++i) {
    double weights[5], sum = 0;
    for (int j = 0; j < 5; ++j) {
      const double cosine = dot(query, i, key, j) / std::sqrt(dot(query, i, query, i) * dot(key, j, key, j));
      sum += weights[j] = std::exp(3 * cosine);
    }
    for (int j = 0; j < 5; ++j) EXPECT_NEAR(a.tape.head_weights(0)(i, j), weights[j] / sum, 1e-5);
  }
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
