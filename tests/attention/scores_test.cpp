#include <attune/attention/scores.hpp>

#include <attune/attention/scaled_dot_product_attention.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::Tensor;

TEST(CappedScale, caps_scaled_scores_before_the_mask) {
  attune::Rng rng(5);
  Tensor<double, 2, 3> query, context;
  Tensor<double, 4, 3> key, value;
  Tensor<double, 2, 4> weights, bias;
  check::fill(query, rng, -3, 3);
  check::fill(key, rng, -3, 3);
  check::fill(value, rng);
  check::fill(bias, rng, -4, 4);
  bias(1, 2) = -check::kInfinity<double>;
  attune::scaled_dot_product_attention(query, key, value, context, weights, attune::CappedScale{0.7, 1.5},
                                       attune::AdditiveMask(bias));
  for (int i = 0; i < 2; ++i) {
    double expected[4], total = 0;
    for (int j = 0; j < 4; ++j) {
      double score = 0;
      for (int d = 0; d < 3; ++d) score += query(i, d) * key(j, d);
      score = 1.5 * attune::kernels::hyperbolic_tangent(0.7 * score / 1.5);
      total += expected[j] = attune::kernels::exponential(score + bias(i, j));
    }
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(weights(i, j), expected[j] / total, 1e-15);
  }
}

TEST(CappedScale, backward_is_the_derivative) {
  check::check_attention_gradients(6, attune::CappedScale{0.7, 0.4}, attune::CausalMask{.offset = 1});
}

TEST(CappedScale, hidden_keys_have_no_influence_on_capped_scores) {
  attune::Rng rng(7);
  Tensor<float, 3, 4> query, key, value, context, d_context, dq, dk, dv;
  Tensor<float, 3, 3> weights;
  float scratch[12];
  check::fill(query, rng);
  check::fill(key, rng);
  check::fill(value, rng);
  check::fill(d_context, rng);
  attune::KeyPaddingMask<3> mask;
  EXPECT_EQ(mask.set_length(2), attune::Status::kOk);
  key(2, 1) = check::kNan<float>;
  const attune::CappedScale scale{0.5f, 2.0f};
  attune::scaled_dot_product_attention(query, key, value, context, weights, scale, mask);
  attune::scaled_dot_product_attention_backward(query, key, value, weights, d_context, dq, dk, dv, scratch,
                                                scale, mask);
  for (const float each : dq.values) EXPECT_TRUE(each - each == 0);
  for (const float each : dk.values) EXPECT_TRUE(each - each == 0);
  for (int d = 0; d < 4; ++d) EXPECT_EQ(dk(2, d), 0.0f);
}
