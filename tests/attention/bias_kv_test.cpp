// Gradients: layer_gradients_test.cpp. Against PyTorch: vectors with add_bias_kv and add_zero_attn.
#include <attune/attention/bias_kv.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 2,
                                        .d_model = 6,
                                        .num_heads = 2,
                                        .kv_len = 3,
                                        .d_v = 2,
                                        .add_bias_kv = true,
                                        .add_zero_attn = true};
using Layer = attune::MultiHeadAttention<kShape>;

}  // namespace

TEST(BiasKv, are_visible_when_all_other_keys_are_hidden) {
  static Layer::Parameters parameters{};
  static Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::Input query{};
  Layer::KeyInput key{};
  Layer::Output y;
  attune::KeyPaddingMask<3> nothing;
  nothing.set_valid({false, false, false});
  attune::forward<Layer>(parameters, query, key, key, y, tape, scratch, nothing);
  const float expected[] = {0, 0, 0, 0.5f, 0.5f};
  for (int j = 0; j < 5; ++j) EXPECT_EQ(tape.head_weights(1)(1, j), expected[j]);
}

TEST(BiasKv, start_as_in_pytorch_whatever_the_initializer) {
  constexpr attune::AttentionShape kWide{
      .seq_len = 1, .d_model = 400, .num_heads = 1, .d_k = 400, .d_v = 1, .add_bias_kv = true};
  using Wide = attune::detail::BiasKv<kWide, float>;
  static Wide::Parameters parameters{};
  attune::Rng rng(4);
  parameters.initialize(attune::XavierUniform{}, rng);
  double square = 0;
  for (const float each : parameters.bias_k.values)
    square += static_cast<double>(each) * static_cast<double>(each);
  EXPECT_NEAR(square, 1.0, 0.25);  // 400 of N(0, 1/400): their squares sum to 1 ± 0.07
}

TEST(BiasKv, come_down_to_the_length_of_a_sequence_with_the_bits_of_padding) {
  check::expect_bits_of_padding<attune::AttentionShape{.seq_len = 37,
                                                       .d_model = 4,
                                                       .num_heads = 2,
                                                       .num_kv_heads = 1,
                                                       .scaling = attune::Scaling::kInverseFourthRootDkEach,
                                                       .dropout = 0.25,
                                                       .alibi = true,
                                                       .add_bias_kv = true,
                                                       .add_zero_attn = true}>(
      {1, 4, 5, 6, 15, 16, 17, 20, 21, 22, 36, 37});
  check::expect_bits_of_padding<attune::AttentionShape{.seq_len = 200,
                                                       .d_model = 4,
                                                       .num_heads = 1,
                                                       .dropout = 0.25,
                                                       .keep_weights = false,
                                                       .softcap = 5,
                                                       .add_bias_kv = true}>(
      {1, 7, 8, 9, 191, 192, 193, 200});
}

TEST(BiasKv, follow_the_valid_length_as_closely_as_the_order_of_sums_allows) {
  const auto at = []<int kv_len>(std::integral_constant<int, kv_len>, int length) {
    constexpr attune::AttentionShape kAppending{
        .seq_len = 2, .d_model = 4, .num_heads = 1, .kv_len = kv_len, .add_bias_kv = true};
    const attune::detail::FirstTokens<kv_len> keys{length};
    return static_cast<int>(attune::detail::appended_at<kAppending>(keys));
  };
  constexpr std::integral_constant<int, 37> kLanes;
  EXPECT_EQ(at(kLanes, 1), 5);
  EXPECT_EQ(at(kLanes, 5), 5);
  EXPECT_EQ(at(kLanes, 6), 21);
  EXPECT_EQ(at(kLanes, 37), 37);
  constexpr std::integral_constant<int, 200> kBlocks;
  EXPECT_EQ(at(kBlocks, 1), 200);
  constexpr std::integral_constant<int, 400> kMore;
  EXPECT_EQ(at(kMore, 192), 16 + 192);
  EXPECT_EQ(at(kMore, 193), 16 + 384);
}
