#include <attune/attention/attention_backward.hpp>

#include <attune/attention/recomputed_attention.hpp>

#include "check.hpp"

namespace {

using attune::Tensor;
constexpr int kQueries = 11, kKeys = 37, kDk = 4, kDv = 3;

// A head, forward and backward; gradients of keys and values behind their operands.
// The context of a mask where everything is finite.
template <class Mask>
auto dense(const Mask& mask) {
  return attune::Context(mask).with_zeros(attune::kernels::DenseTerms{});
}

struct Head {
  Tensor<float, kQueries, kDk> query, d_query;
  Tensor<float, kKeys, kDk> key, d_key;
  Tensor<float, kKeys, kDv> value, d_value;
  Tensor<float, kQueries, kDv> context, d_context;
  Tensor<float, kQueries, kKeys> weights;
  Tensor<float, kQueries, 2> softmax_stats;
  static constexpr auto kScores = attune::detail::ScaledScores<float>{0.5f};

  explicit Head(const auto& mask) {
    attune::Rng rng(1);
    check::fill(query, rng), check::fill(key, rng), check::fill(value, rng), check::fill(d_context, rng);
    attune::detail::attend<1, kQueries>(attune::view(query), attune::view(key), attune::view(value),
                                        attune::view(context), attune::view(weights), kScores, 0, 0,
                                        attune::detail::AllWeights{}, dense(mask), softmax_stats.data());
  }
  auto weights_in_backward() {
    return attune::detail::StoredWeights<decltype(attune::view(weights))>{attune::view(weights)};
  }
};

}  // namespace

TEST(AttentionBackward, may_write_gradients_over_operands) {
  Head apart(attune::NoMask{}), in_place(attune::NoMask{});
  static float scratch[kQueries * kKeys];
  const auto backward = [](Head& head, auto& dq, auto& dk, auto& dv) {
    attune::detail::attend_backward(
        attune::view(head.query), attune::view(head.key), attune::view(head.value),
        head.weights_in_backward(), attune::view(head.d_context), attune::view(dq), attune::view(dk),
        attune::view(dv), scratch, Head::kScores, attune::detail::AllWeights{}, attune::Context<>{});
  };
  backward(apart, apart.d_query, apart.d_key, apart.d_value);
  backward(in_place, in_place.query, in_place.key, in_place.value);
  EXPECT_TRUE(check::same_bits(apart.d_query, in_place.query));
  EXPECT_TRUE(check::same_bits(apart.d_key, in_place.key));
  EXPECT_TRUE(check::same_bits(apart.d_value, in_place.value));
}
