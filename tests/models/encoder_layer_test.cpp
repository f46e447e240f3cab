#include <attune/models/encoder_layer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "problem.hpp"

namespace {

using attune::Activation;
using attune::EncoderLayer;
using attune::EncoderLayerShape;
using attune::NormPlacement;

constexpr EncoderLayerShape kAfter{.attention = {.seq_len = 4, .d_model = 6, .num_heads = 2}, .d_ff = 5};
constexpr EncoderLayerShape kBefore{.attention = {.seq_len = 4, .d_model = 6, .num_heads = 2},
                                    .d_ff = 5,
                                    .activation = Activation::kGelu,
                                    .norm = NormPlacement::kBefore};
constexpr EncoderLayerShape with_dropout(EncoderLayerShape shape) {
  shape.attention.dropout = 0.25;
  return shape;
}

using check::Problem;

template <EncoderLayerShape shape>
void expect_dx_over_dy() {
  Problem<EncoderLayer<shape>> a(2), b(2);
  a.forward();
  b.forward();
  a.backward();
  EncoderLayer<shape>::backward(b.parameters, b.x, b.tape, b.dy, b.dy, b.gradients, b.scratch);
  EXPECT_TRUE(check::same_bits(a.dx, b.dy));
  EXPECT_TRUE(check::same_bits(a.gradients, b.gradients));
}

}  // namespace

// Gradients: transformer_gradients_test.cpp.

TEST(EncoderLayer, passes_the_mask_to_attention) {
  Problem<EncoderLayer<kBefore>> a(4), b(4);
  for (int j = 0; j < 6; ++j) b.x(3, j) += 1;
  a.forward(attune::CausalMask{});
  b.forward(attune::CausalMask{});
  for (int j = 0; j < 6; ++j) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.y(i, j), b.y(i, j));
    EXPECT_NE(a.y(3, j), b.y(3, j));
  }
}

TEST(EncoderLayer, gradient_of_the_input_may_replace_dy) {
  expect_dx_over_dy<kAfter>();
  expect_dx_over_dy<kBefore>();
  expect_dx_over_dy<with_dropout(kAfter)>();
  expect_dx_over_dy<with_dropout(kBefore)>();
}

TEST(EncoderLayer, dropout_is_of_training_alone_and_every_branch_has_its_own) {
  using Plain = EncoderLayer<kBefore>;
  using Dropped = EncoderLayer<with_dropout(kBefore)>;
  Problem<Plain> plain(5);
  Problem<Dropped> a(5), again(5);
  attune::Rng rng(6);
  attune::draw_seeds(a.tape, rng);
  again.tape = a.tape;
  EXPECT_NE(attune::detail::member<0>(a.tape.dropout).position,
            attune::detail::member<1>(a.tape.dropout).position);
  EXPECT_NE(attune::detail::member<0>(a.tape.dropout).position, a.tape.feed_forward.dropout.position);
  plain.forward();
  a.forward();
  again.forward();
  EXPECT_FALSE(check::same_bits(plain.y, a.y));
  EXPECT_TRUE(check::same_bits(again.y, a.y));
  a.backward();
  a.forward();
  EXPECT_FALSE(check::same_bits(again.y, a.y));
  Dropped::forward(a.parameters, a.x, a.y, a.inference);
  EXPECT_TRUE(check::same_bits(plain.y, a.y));
}

TEST(EncoderLayer, tapes_residual_sums_but_no_outputs_of_norms) {
  using After = EncoderLayer<kAfter>;
  using Before = EncoderLayer<kBefore>;
  constexpr std::size_t kTokens = sizeof(After::Input);
  constexpr std::size_t kParts =
      2 * sizeof(After::Norm::Tape) + sizeof(After::SelfAttention::Tape) + sizeof(After::Network::Tape);
  static_assert(sizeof(After::Tape) == 2 * kTokens + kParts);
  static_assert(sizeof(Before::Tape) == kTokens + kParts);
  static_assert(sizeof(After::Parameters) == sizeof(float) * attune::count_scalars(After::Parameters{}));
  static_assert(std::is_trivially_copyable_v<Before::Tape> && std::is_trivially_copyable_v<Before::Scratch>);
}

TEST(EncoderLayer, starts_as_pytorch_does) {
  Problem<EncoderLayer<kAfter>> a(7);
  attune::Rng rng(8);
  attune::initialize(a.parameters, attune::MultiheadAttentionDefault{}, rng);
  for (const float value : a.parameters.norm2.weight.values) EXPECT_EQ(value, 1.0f);
  for (const float value : a.parameters.norm1.bias.values) EXPECT_EQ(value, 0.0f);
  for (const float value : a.parameters.self_attention.output.bias.values) EXPECT_EQ(value, 0.0f);
  float largest = 0;
  for (const float value : a.parameters.feed_forward.linear2.bias.values) {
    largest = attune::kernels::maximum(largest, attune::kernels::magnitude(value));
  }
  EXPECT_TRUE(largest > 0 && largest <= attune::kernels::square_root(1.0f / 5));
}

// A sequence that is shorter than seq_len needs no padding: an instance of its length takes the same sets.
TEST(EncoderLayer, shorter_runs_on_the_parameters_and_gradients_of_a_longer_one) {
  constexpr EncoderLayerShape kLong{.attention = {.seq_len = 6, .d_model = 4, .num_heads = 2}, .d_ff = 5};
  constexpr EncoderLayerShape kShort{.attention = {.seq_len = 4, .d_model = 4, .num_heads = 2}, .d_ff = 5};
  using Long = EncoderLayer<kLong>;
  using Short = EncoderLayer<kShort>;
  Problem<Long> padded(5);
  for (int i = kShort.attention.seq_len; i < kLong.attention.seq_len; ++i) {
    for (int j = 0; j < kLong.attention.d_model; ++j) padded.dy(i, j) = 0;
  }
  attune::KeyPaddingMask<kLong.attention.seq_len> mask;
  EXPECT_EQ(mask.set_length(kShort.attention.seq_len), attune::Status::kOk);
  static typename Long::Parameters gradients;
  attune::set_zero(padded.gradients);
  attune::set_zero(gradients);
  attune::forward<Long>(padded.parameters, padded.x, padded.y, padded.tape, padded.scratch, mask);
  attune::backward<Long>(padded.parameters, padded.x, padded.tape, padded.dy, padded.dx, padded.gradients,
                         padded.scratch, mask);

  const auto x = view(padded.x).rows_at<kShort.attention.seq_len>(0),
             dy = view(padded.dy).rows_at<kShort.attention.seq_len>(0);
  Short::Output y, dx;
  Short::Tape tape;
  Short::Scratch scratch;
  Short::forward(padded.parameters, x, y, tape, scratch);
  Short::backward(padded.parameters, x, tape, dy, dx, gradients, scratch);
  for (int i = 0; i < y.size; ++i) {
    EXPECT_EQ(y.values[i], padded.y.values[i]);
    EXPECT_EQ(dx.values[i], padded.dx.values[i]);
  }
  EXPECT_TRUE(check::same_bits(gradients, padded.gradients));
}

TEST(EncoderLayer, passes_options_on_to_its_attention) {
  constexpr attune::AttentionShape kAttention = check::changed(check::kPassedOn, [](auto& shape) {
    shape.rotary_pairs = attune::RotaryPairs::kInterleaved;
    shape.window.right = 0;
    shape.query_key_norm = attune::QueryKeyNorm::kRootMeanSquare;
  });
  using Layer = attune::EncoderLayer<EncoderLayerShape{.attention = kAttention, .d_ff = 5}>;
  EXPECT_TRUE((std::is_same_v<Layer::SelfAttention, attune::MultiHeadAttention<kAttention>>));
}
