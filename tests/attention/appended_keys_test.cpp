// Gradients: layer_gradients_test.cpp. Against PyTorch: vectors with add_bias_kv and add_zero_attn.
#include <attune/attention/appended_keys.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

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

TEST(AppendedKeys, stand_behind_those_of_the_tokens) {
  static Layer::Parameters parameters;
  static Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::Input query;
  Layer::KeyInput key;
  Layer::Output y;
  attune::Rng rng(3);
  check::fill_set(parameters, rng);
  check::fill(query, rng);
  check::fill(key, rng);
  Layer::forward(parameters, query, key, key, y, tape, scratch);
  static_assert(Layer::Weights::cols == 5);
  for (int d = 0; d < 6; ++d) {
    EXPECT_EQ(tape.key(3, d), parameters.appended.bias_k(0, d));
    EXPECT_EQ(tape.key(4, d), 0.0f);
  }
  for (int d = 0; d < 4; ++d) {
    EXPECT_EQ(tape.value(3, d), parameters.appended.bias_v(0, d));
    EXPECT_EQ(tape.value(4, d), 0.0f);
  }
}

TEST(AppendedKeys, are_what_a_query_sees_whose_keys_are_all_hidden) {
  static Layer::Parameters parameters{};
  static Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::Input query{};
  Layer::KeyInput key{};
  Layer::Output y;
  attune::KeyPaddingMask<3> nothing;
  EXPECT_EQ(nothing.set_length(0), attune::Status::kOk);
  Layer::forward(parameters, query, key, key, y, tape, scratch, nothing);
  const float expected[] = {0, 0, 0, 0.5f, 0.5f};
  for (int j = 0; j < 5; ++j) EXPECT_EQ(tape.head_weights(1)(1, j), expected[j]);
}

TEST(AppendedKeys, start_as_in_pytorch_whatever_the_initialiser) {
  constexpr attune::AttentionShape kWide{
      .seq_len = 1, .d_model = 400, .num_heads = 1, .d_k = 400, .d_v = 1, .add_bias_kv = true};
  using Wide = attune::detail::AppendedKeys<kWide, float>;
  static Wide::Parameters parameters{};
  attune::Rng rng(4);
  parameters.initialise(attune::XavierUniform{}, rng);
  double square = 0;
  for (const float each : parameters.bias_k.values)
    square += static_cast<double>(each) * static_cast<double>(each);
  EXPECT_NEAR(square, 1.0, 0.25);  // 400 of N(0, 1/400): their squares sum to 1 ± 0.07
}
