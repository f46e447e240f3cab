// One property over every layer, mask and option: backward is the derivative of forward, in double, for every
// parameter and every input; gradients accumulate; leaving out dx changes nothing else.
#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/softmax.hpp>
#include <attune/training/loss.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using attune::AttentionShape;
using attune::Scaling;
using attune::Tensor;
using check::expect_doubled;
using check::expect_gradient;
using check::expect_set_gradients;
using check::fill;
using check::kAllSizesDiffer;

template <AttentionShape shape>
struct Attention : check::AttentionProblem<shape, double> {
  decltype(Attention::gradients) once{};

  explicit Attention(std::uint64_t seed) { this->draw(seed); }
};

template <AttentionShape shape, class Mask>
void check_cross(const Mask& mask) {
  static Attention<shape> a(7);
  a = Attention<shape>(7);
  const auto loss = [&] {
    a.infer(mask);
    return check::dot(a.y, a.dy);
  };
  const auto train = [&] {
    a.forward(mask);
    a.backward(mask);
  };
  train();
  a.once = a.gradients;
  EXPECT_GT(expect_set_gradients(loss, a.parameters, a.gradients), 0.1);
  EXPECT_GT(expect_gradient({"query"}, loss, a.query, a.d_query), 1e-3);
  EXPECT_GT(expect_gradient({"key"}, loss, a.key, a.d_key), 1e-3);
  EXPECT_GT(expect_gradient({"value"}, loss, a.value, a.d_value), 1e-3);
  train();
  expect_doubled(a.once, a.gradients);
}

constexpr AttentionShape kOneHead{.seq_len = 3, .d_model = 4, .num_heads = 1};
constexpr AttentionShape kTwoHeads{.seq_len = 4, .d_model = 4, .num_heads = 2};
constexpr AttentionShape kThreeHeads{.seq_len = 4, .d_model = 6, .num_heads = 3};

constexpr AttentionShape without_bias(AttentionShape shape) {
  shape.bias = false;
  return shape;
}
constexpr AttentionShape scaled(AttentionShape shape, Scaling scaling) {
  shape.scaling = scaling;
  return shape;
}

template <AttentionShape shape, class Mask = attune::NoMask>
void self(const Mask& mask = {}) {
  check::check_layer_gradients<attune::MultiHeadAttention<shape, double>>(-1, 1, mask);
}
template <AttentionShape shape, class Mask = attune::NoMask>
void cross(const Mask& mask = {}) {
  if constexpr (check::kDepth >= check::kBoard) {
    check_cross<shape>(mask);
  } else {
    check::leave_case();
  }
}

}  // namespace

TEST(LayerGradients, linear) {
  using attune::Linear, attune::LinearShape;
  check::check_layer_gradients<Linear<LinearShape{.rows = 3, .d_in = 4, .d_out = 5}, double>>(-1, 1);
  check::check_layer_gradients<Linear<LinearShape{.rows = 5, .d_in = 2, .d_out = 7, .bias = false}, double>>(
      -1, 1);
}

TEST(LayerGradients, softmax) { check::check_layer_gradients<attune::Softmax<3, 5, double>>(-3, 3); }

TEST(LayerGradients, scaled_dot_product_attention) {
  check::check_attention_gradients(4, 0.7, attune::CausalMask{.offset = 2});
}

TEST(LayerGradients, self_attention_with_one_two_and_three_heads) {
  self<kOneHead>();
  self<kThreeHeads>();
}

TEST(LayerGradients, grouped_heads) {
  self<AttentionShape{.seq_len = 3, .d_model = 8, .num_heads = 4, .num_kv_heads = 2}>();
}

TEST(LayerGradients, windows_alibi_and_softcap) {
  self<AttentionShape{.seq_len = 5,
                      .d_model = 4,
                      .num_heads = 2,
                      .window = {.left = 1, .right = 0, .sinks = 1},
                      .alibi = true,
                      .softcap = 0.5}>();
  cross<AttentionShape{.seq_len = 3,
                       .d_model = 4,
                       .num_heads = 4,
                       .num_kv_heads = 2,
                       .kv_len = 5,
                       .keep_weights = false,
                       .window = {.left = 2, .right = 1},
                       .softcap = 0.25,
                       .offset = 1}>();
}

TEST(LayerGradients, normalized_queries_and_keys) {
  self<AttentionShape{.seq_len = 4,
                      .d_model = 8,
                      .num_heads = 2,
                      .rotary_dim = 4,
                      .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare}>();
  cross<AttentionShape{.seq_len = 3,
                       .d_model = 4,
                       .num_heads = 2,
                       .num_kv_heads = 1,
                       .kv_len = 5,
                       .d_k = 4,
                       .scaling = Scaling::kInverseFourthRootDkEach,
                       .query_key_norm = attune::QueryKeyNorm::kLayerNorm}>(attune::CausalMask{.offset = 1});
}

TEST(LayerGradients, a_trained_factor_of_scores) {
  self<AttentionShape{.seq_len = 4,
                      .d_model = 6,
                      .num_heads = 2,
                      .scaling = Scaling::kOne,
                      .rotary_dim = 2,
                      .window = {.own_key = attune::OwnKey::kHidden},
                      .score_scale = attune::ScoreScale::kExponential,
                      .score_scales = 1}>();
  self<AttentionShape{.seq_len = 4,
                      .d_model = 8,
                      .num_heads = 4,
                      .num_kv_heads = 2,
                      .keep_weights = false,
                      .query_key_norm = attune::QueryKeyNorm::kUnitLength,
                      .score_scale = attune::ScoreScale::kClampedExponential}>(attune::CausalMask{});
  cross<AttentionShape{
      .seq_len = 3, .d_model = 4, .num_heads = 2, .kv_len = 5, .score_scale = attune::ScoreScale::kFactor}>();
  cross<AttentionShape{.seq_len = 3,
                       .d_model = 4,
                       .num_heads = 2,
                       .kv_len = 5,
                       .d_k = 4,
                       .query_key_norm = attune::QueryKeyNorm::kLayerNorm,
                       .score_scale = attune::ScoreScale::kInverse,
                       .score_scales = 1}>();
}

TEST(LayerGradients, trained_biases_by_relative_position) {
  using attune::RelativePositions;
  self<AttentionShape{.seq_len = 5,
                      .d_model = 6,
                      .num_heads = 2,
                      .relative_bias = {.kind = RelativePositions::kDistance, .max_distance = 2}}>();
  self<AttentionShape{.seq_len = 5,
                      .d_model = 8,
                      .num_heads = 4,
                      .num_kv_heads = 2,
                      .rotary_dim = 2,
                      .keep_weights = false,
                      .window = {.left = 3},
                      .alibi = true,
                      .relative_bias = {.kind = RelativePositions::kGrid, .rows = 2, .cols = 2, .prefix = 1},
                      .softcap = 3}>(attune::CausalMask{});
  cross<AttentionShape{.seq_len = 3,
                       .d_model = 4,
                       .num_heads = 2,
                       .kv_len = 6,
                       .scaling = Scaling::kOne,
                       .relative_bias = {.kind = RelativePositions::kGridDistance, .rows = 2, .cols = 3},
                       .add_bias_kv = true,
                       .add_zero_attn = true,
                       .offset = 2}>();
  cross<AttentionShape{
      .seq_len = 3,
      .d_model = 4,
      .num_heads = 2,
      .kv_len = 7,
      .relative_bias = {.kind = RelativePositions::kBuckets, .max_distance = 5, .buckets = 8}}>();
}

TEST(LayerGradients, keys_that_are_appended) {
  cross<AttentionShape{.seq_len = 3,
                       .d_model = 4,
                       .num_heads = 4,
                       .num_kv_heads = 2,
                       .kv_len = 5,
                       .d_k = 2,
                       .d_v = 3,
                       .scaling = Scaling::kInverseFourthRootDkEach,
                       .rotary_dim = 2,
                       .window = {.right = 0},
                       .add_bias_kv = true,
                       .add_zero_attn = true}>();
}

TEST(LayerGradients, self_attention_without_bias) { self<without_bias(kThreeHeads)>(); }

TEST(LayerGradients, every_scaling) {
  cross<scaled(kAllSizesDiffer, Scaling::kInverseSqrtDModel)>();
  cross<scaled(kAllSizesDiffer, Scaling::kInverseFourthRootDkEach)>();
}

TEST(LayerGradients, cross_attention_with_every_size_another) {
  cross<kAllSizesDiffer>();
  cross<without_bias(kAllSizesDiffer)>();
}

TEST(LayerGradients, self_attention_shape_with_three_inputs) { cross<kTwoHeads>(); }

TEST(LayerGradients, causal_mask) {
  self<kThreeHeads>(attune::CausalMask{});
  cross<kAllSizesDiffer>(attune::CausalMask{.offset = 2});
  cross<kAllSizesDiffer>(attune::CausalMask{.offset = -1});  // the first query is fully masked
}

TEST(LayerGradients, key_padding_mask) {
  attune::KeyPaddingMask<5> by_length;
  EXPECT_EQ(by_length.set_length(3), attune::Status::kOk);
  cross<kAllSizesDiffer>(by_length);
  attune::KeyPaddingMask<5> by_token;
  by_token.set_valid({true, false, true, true, false});
  cross<kAllSizesDiffer>(by_token);
}

TEST(LayerGradients, query_padding_mask) {
  attune::QueryPaddingMask<4> mask;
  EXPECT_EQ(mask.set_length(2), attune::Status::kOk);
  self<kThreeHeads>(mask);
}

TEST(LayerGradients, additive_mask_for_all_heads) {
  attune::Rng rng(5);
  Tensor<double, 3, 5> bias;
  fill(bias, rng);
  cross<kAllSizesDiffer>(attune::AdditiveMask(bias));
}

TEST(LayerGradients, additive_mask_per_head_with_infinities) {
  attune::Rng rng(6);
  Tensor<double, 6, 5> bias;
  fill(bias, rng);
  cross<kAllSizesDiffer>(attune::additive_mask_per_head<2>(bias));
  bias(0, 1) = -check::kInfinity<double>;
  bias(1, 0) = bias(1, 3) = check::kInfinity<double>;
  bias(4, 2) = check::kInfinity<double>;
  for (int key = 0; key < 5; ++key) bias(5, key) = -check::kInfinity<double>;
  cross<kAllSizesDiffer>(attune::additive_mask_per_head<2>(bias));
}

TEST(LayerGradients, composed_masks) {
  attune::Rng rng(8);
  Tensor<double, 4, 4> bias;
  fill(bias, rng);
  bias(3, 0) = -check::kInfinity<double>;
  attune::KeyPaddingMask<4> keys;
  keys.set_valid({false, true, true, true});  // with the causal mask, query 0 is fully masked
  attune::QueryPaddingMask<4> queries;
  EXPECT_EQ(queries.set_length(3), attune::Status::kOk);
  self<kThreeHeads>(attune::CausalMask{} && keys);
  self<kThreeHeads>(keys && queries);
  self<kThreeHeads>(attune::CausalMask{} && keys && attune::AdditiveMask(bias) && queries);
}

namespace {

template <class Loss>
double check_loss() {
  attune::Rng rng(9);
  Tensor<double, 3, 5> y, target, dy, unused;
  fill(y, rng, -2, 2);
  fill(target, rng, -2, 2);
  (void)Loss::forward(y, target, dy, 0.25);
  const auto loss = [&] { return Loss::forward(y, target, unused, 0.25); };
  return expect_gradient({"y"}, loss, y, dy);
}

}  // namespace

TEST(LayerGradients, losses_with_every_reduction) {
  const double mean = check_loss<attune::MeanSquaredError>();
  const double sum = check_loss<attune::SumSquaredError>();
  const double half = check_loss<attune::HalfSumSquaredError>();
  EXPECT_NEAR(sum / mean, 15.0, 1e-6);
  EXPECT_NEAR(sum / half, 2.0, 1e-6);
}
