#include <attune/execution/attention_mask.hpp>

#include <attune/attention/scaled_dot_product_attention.hpp>

#include "check.hpp"

namespace {

// A mask of one's own: the second head sees the first key alone.
struct SecondHeadSeesFirst {
  template <int kv_len, class Scalar>
  void hide(int head, int, Scalar* row) const {
    for (int key = 1; key < kv_len && head == 1; ++key) row[key] = -check::kInfinity<Scalar>;
  }
  template <int kv_len, class Scalar>
  void bias(int, int, Scalar*) const {}
};

struct NotAMask {
  void hide(int) const {}
};

static_assert(attune::AttentionMask<SecondHeadSeesFirst> && attune::AttentionMask<attune::NoMask>);
static_assert(!attune::AttentionMask<NotAMask> && !attune::AttentionMask<int>);
static_assert(attune::kMasks<SecondHeadSeesFirst> && !attune::kMasks<attune::NoMask>);
static_assert(attune::detail::keeps_key<4>(attune::NoMask{}, 3));

}  // namespace

TEST(AttentionMask, user_masks_are_called_for_every_head_and_query) {
  attune::Tensor<float, 2, 3> query, key, value, context;
  attune::Tensor<float, 2, 2> weights;
  attune::Rng rng(1);
  check::fill(query, rng);
  check::fill(key, rng);
  check::fill(value, rng);
  attune::scaled_dot_product_attention<2>(query, key, value, context, weights, 1.0f, SecondHeadSeesFirst{},
                                          1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(weights(i, 1), 0.0f);
    for (int j = 0; j < 3; ++j) EXPECT_EQ(context(i, j), value(0, j));
  }
  attune::scaled_dot_product_attention<2>(query, key, value, context, weights, 1.0f, SecondHeadSeesFirst{},
                                          0);
  EXPECT_NE(weights(0, 1), 0.0f);
}
