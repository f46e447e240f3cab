// The gradient property of gradient_suite.hpp for the two inputs of a decoder layer. Values: vectors of
// PyTorch.
#include <attune/models/decoder_layer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "drawn_layer.hpp"
#include "gradient_suite.hpp"
#include "models/stacked_decoder.hpp"

namespace {

using attune::Activation;
using attune::DecoderLayer;
using attune::DecoderLayerShape;
using attune::NormPlacement;

constexpr DecoderLayerShape kAfter{
    .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 5, .memory_len = 4};
constexpr DecoderLayerShape kBefore{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2},
                                    .d_ff = 5,
                                    .memory_len = 4,
                                    .activation = Activation::kGelu,
                                    .norm = NormPlacement::kBefore,
                                    .epsilon = 1e-3};
constexpr DecoderLayerShape with_dropout(DecoderLayerShape shape) {
  shape.attention.dropout = 0.3;
  shape.epsilon = 0.1;  // keeps third derivatives, and so finite differences' own error, small
  return shape;
}

template <DecoderLayerShape shape>
void check_gradients() {
  check::check_layer_gradients<check::StackedDecoder<DecoderLayer<shape, double>>>(-1, 1);
}

template <class Layer>
struct Problem : check::DrawnDecoder<Layer> {
  explicit Problem(std::uint64_t seed) {
    attune::Rng rng(seed);
    this->draw(rng);
    this->tape = {};
  }
};

}  // namespace

TEST(DecoderLayer, backward_is_the_derivative_of_forward) {
  check_gradients<kAfter>();
  check_gradients<kBefore>();
}

TEST(DecoderLayer, backward_is_the_derivative_of_forward_with_dropout) {
  check_gradients<with_dropout(kAfter)>();
  check_gradients<with_dropout(kBefore)>();
}

TEST(DecoderLayer, gradient_of_the_input_may_replace_dy) {
  using Layer = DecoderLayer<kAfter>;
  Problem<Layer> a(1), b(1);
  for (auto* each : {&a, &b}) {
    Layer::forward(each->parameters, each->x, each->memory, each->y, each->tape, each->scratch);
    auto& dx = each == &a ? each->dx : each->dy;
    Layer::backward(each->parameters, each->x, each->memory, each->tape, each->dy, dx, each->d_memory,
                    each->gradients, each->scratch);
  }
  EXPECT_TRUE(check::same_bits(a.dx, b.dy));
  EXPECT_TRUE(check::same_bits(a.gradients, b.gradients));
}

TEST(DecoderLayer, later_tokens_are_hidden_and_masks_reach_attention) {
  using Layer = DecoderLayer<kBefore>;
  Problem<Layer> a(5), b(5);
  for (int j = 0; j < 4; ++j) {
    b.x(2, j) += 1;
    b.memory(3, j) += 1;
  }
  attune::KeyPaddingMask<4> padding;
  EXPECT_EQ(padding.set_length(3), attune::Status::kOk);
  for (auto* problem : {&a, &b}) {
    attune::forward<Layer>(problem->parameters, problem->x, problem->memory, problem->y, problem->tape,
                           problem->scratch, attune::CausalMask{}, padding);
  }
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(a.y(i, j), b.y(i, j));
    EXPECT_NE(a.y(2, j), b.y(2, j));
  }
}

TEST(DecoderLayer, passes_options_on_to_its_attentions) {
  constexpr attune::AttentionShape kSelf = check::kPassedOn;
  // All options but positions.
  constexpr attune::AttentionShape kCross = check::changed(kSelf, [](auto& shape) {
    shape.kv_len = 6;
    shape.rotary_dim = 0;
    shape.rotary_base = 10'000;
    shape.window = {};
    shape.alibi = false;
    shape.relative_bias = {};
  });
  using Layer = attune::DecoderLayer<DecoderLayerShape{.attention = kSelf, .d_ff = 5, .memory_len = 6}>;
  EXPECT_TRUE((std::is_same_v<Layer::SelfAttention, attune::MultiHeadAttention<kSelf>>));
  EXPECT_TRUE((std::is_same_v<Layer::CrossAttention, attune::MultiHeadAttention<kCross>>));
}
