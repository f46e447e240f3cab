// Normalized: query_key_norm_test.cpp; appended: appended_keys_test.cpp; scaled:
// multi_head_attention_test.cpp.
#include <attune/attention/attention_operands.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kRotated{.seq_len = 5, .d_model = 8, .num_heads = 2, .rotary_dim = 4};

}  // namespace

TEST(AttentionOperands, are_rotated_after_their_projection) {
  using Layer = attune::MultiHeadAttention<kRotated>;
  using Plain = attune::MultiHeadAttention<attune::AttentionShape{5, 8, 2}>;
  using Rotation = attune::RotaryPositions<attune::RotaryShape{.seq_len = 5, .num_heads = 2, .d_k = 4}>;
  static Layer::Parameters parameters;
  static Plain::Parameters plain;
  static Layer::Tape tape;
  static Plain::Tape expected;
  Layer::Scratch scratch;
  Plain::Scratch plain_scratch;
  Layer::Input x, y;
  attune::Rng rng(8);
  check::fill_set(parameters, rng);
  attune::for_each_tensor([](const attune::TensorPath&, auto& to, const auto& from) { to = from; }, plain,
                          parameters);
  check::fill(x, rng);
  Layer::forward(parameters, x, y, tape, scratch);
  Plain::forward(plain, x, y, expected, plain_scratch);
  Rotation::forward(expected.query, expected.query);
  Rotation::forward(expected.key, expected.key);
  EXPECT_TRUE(check::same_bits(tape.query, expected.query));
  EXPECT_TRUE(check::same_bits(tape.key, expected.key));
  EXPECT_TRUE(check::same_bits(tape.value, expected.value));
}

TEST(AttentionOperands, attend_by_the_distance_of_tokens_where_they_are_rotated) {
  // Two tokens, then the same two later: with a causal window of two they attend alike.
  using Layer = attune::MultiHeadAttention<kRotated>;
  static Layer::Parameters parameters;
  static Layer::InferenceScratch scratch;
  Layer::Input x, y;
  attune::Rng rng(9);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  for (int j = 0; j < 8; ++j) x(3, j) = x(0, j), x(4, j) = x(1, j);
  attune::Tensor<float, 5, 5> window;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) window(i, j) = j == i || j == i - 1 ? 0.0f : -INFINITY;
  }
  attune::infer<Layer>(parameters, x, y, scratch, attune::AdditiveMask(window));
  for (int j = 0; j < 8; ++j) EXPECT_NEAR(y(4, j), y(1, j), 1e-6);
}
