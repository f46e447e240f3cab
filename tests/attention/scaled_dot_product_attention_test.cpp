#include <attune/attention/scaled_dot_product_attention.hpp>

#include "check.hpp"

namespace {

using attune::Tensor;

}  // namespace

// Gradients: layer_gradients_test.cpp.

TEST(ScaledDotProductAttention, is_zero_for_fully_masked_queries_and_so_are_its_gradients) {
  constexpr int kSeqLen = 3, kKvLen = 4, kWidth = 2;
  attune::Rng rng(1);
  Tensor<float, kSeqLen, kWidth> query, d_query;
  Tensor<float, kKvLen, kWidth> key, value, d_key, d_value;
  Tensor<float, kSeqLen, kWidth> context, d_context;
  Tensor<float, kSeqLen, kKvLen> weights;
  float scratch[kSeqLen * kKvLen];
  check::fill(query, rng);
  check::fill(key, rng);
  check::fill(value, rng);
  check::fill(d_context, rng);
  attune::QueryPaddingMask<kSeqLen> mask;
  mask.set_valid(std::array<bool, kSeqLen>{});
  attune::scaled_dot_product_attention(query, key, value, context, weights, 1.0f, mask);
  for (const float w : weights.values) EXPECT_EQ(w, 0.0f);
  for (const float c : context.values) EXPECT_EQ(c, 0.0f);
  attune::scaled_dot_product_attention_backward(query, key, value, weights, d_context, d_query, d_key,
                                                d_value, scratch, 1.0f);
  for (const float d : d_query.values) EXPECT_EQ(d, 0.0f);
  for (const float d : d_key.values) EXPECT_EQ(d, 0.0f);
  for (const float d : d_value.values) EXPECT_EQ(d, 0.0f);
}

TEST(ScaledDotProductAttention, gradients_may_overwrite_query_key_and_value) {
  attune::Rng rng(2);
  Tensor<float, 3, 6> query, d_query;
  Tensor<float, 4, 6> key, d_key;
  Tensor<float, 4, 5> value, d_value;
  Tensor<float, 3, 5> context, d_context;
  Tensor<float, 3, 4> weights, again;
  float scratch[3 * 6];
  check::fill(query, rng);
  check::fill(key, rng);
  check::fill(value, rng);
  check::fill(d_context, rng);
  attune::scaled_dot_product_attention(query, key, value, context, weights, 0.5f);
  again = weights;
  attune::scaled_dot_product_attention_backward(query, key, value, weights, d_context, d_query, d_key,
                                                d_value, scratch, 0.5f);
  attune::scaled_dot_product_attention_backward(query, key, value, again, d_context, query, key, value,
                                                scratch, 0.5f);
  EXPECT_TRUE(check::same_bits(query, d_query));
  EXPECT_TRUE(check::same_bits(key, d_key));
  EXPECT_TRUE(check::same_bits(value, d_value));
}

TEST(InverseSquareRoot, of_floats_is_rounded_once) {
  static_assert(attune::inverse_square_root<double>(4) == 0.5);
  static_assert(attune::inverse_square_root<float>(1) == 1.0f);
  for (int n = 1; n <= 1024; ++n) {
    const double exact = 1.0 / attune::kernels::square_root(static_cast<double>(n));
    EXPECT_EQ(attune::inverse_square_root<float>(n), static_cast<float>(exact));
    // Newton's root may be one unit off (2⁻⁵²); both quotients and the root compared with round (2⁻⁵³ each).
    EXPECT_NEAR(attune::inverse_square_root<double>(n), exact, 2.5 * 0x1p-52 * exact);
  }
}
