#include <attune/attention/scores.hpp>

#include <attune/attention/scaled_dot_product_attention.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::Tensor;

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
