#include <attune/attention/attention_weights.hpp>

#include "check.hpp"

TEST(AttentionWeights, are_the_softmax_of_scores_whatever_rows_are_computed_together) {
  constexpr int kQueries = 5, kKeys = 7, kDk = 3;
  attune::Tensor<float, kQueries, kDk> query;
  attune::Tensor<float, kKeys, kDk> key;
  attune::Tensor<float, kQueries, kKeys> all;
  attune::Tensor<float, 1, kKeys> one;
  attune::Rng rng(1);
  check::fill(query, rng);
  check::fill(key, rng);
  const auto scores = attune::detail::scores_of(0.5f);
  const attune::CausalMask mask;
  attune::detail::weigh(attune::view(query), attune::view(key), attune::view(all), scores, mask, 0, 0);
  for (int i = 0; i < kQueries; ++i) {
    attune::detail::weigh(attune::view(query).rows_at<1>(i), attune::view(key), attune::view(one), scores,
                          mask, 0, i);
    float sum = 0;
    for (int j = 0; j < kKeys; ++j) {
      EXPECT_TRUE(check::same_bits(all(i, j), one(0, j)));
      if (j > i) {
        EXPECT_EQ(all(i, j), 0.0f);
      }
      sum += all(i, j);
    }
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
  }
}
