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
