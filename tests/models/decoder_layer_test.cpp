// The decoder layer against its parts, and the gradient property of gradient_suite.hpp for its two inputs.
#include <attune/models/decoder_layer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "gradient_suite.hpp"

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

template <class Layer>
struct Problem {
  typename Layer::Parameters parameters, gradients{};
  typename Layer::Input x, dx;
  typename Layer::Memory memory, d_memory;
  typename Layer::Output y, dy;
  typename Layer::Tape tape{};
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  explicit Problem(std::uint64_t seed) {
    attune::Rng rng(seed);
    check::fill_set(parameters, rng);
    check::fill(x, rng);
    check::fill(memory, rng);
    check::fill(dy, rng);
  }
  void forward() { Layer::forward(parameters, x, memory, y, tape, scratch); }
  void infer() { Layer::forward(parameters, x, memory, y, inference); }
  void backward() { Layer::backward(parameters, x, memory, tape, dy, dx, d_memory, gradients, scratch); }
};

template <DecoderLayerShape shape>
void check_derivatives() {
  using Layer = DecoderLayer<shape, double>;
  static Problem<Layer> a(1);
  static typename Layer::Parameters once;
  const typename Layer::Tape start = a.tape;
  const auto forward = [&] {
    a.tape = start;
    a.forward();
  };
  const auto loss = [&] {
    if constexpr (attune::detail::DropsIn<typename Layer::Tape>) {
      forward();
    } else {
      a.infer();
    }
    return check::dot(a.y, a.dy);
  };
  forward();
  a.backward();
  EXPECT_GT(check::expect_set_gradients(loss, a.parameters, a.gradients), 0.1);
  EXPECT_GT(check::expect_gradient({"x"}, loss, a.x, a.dx), 1e-3);
  EXPECT_GT(check::expect_gradient({"memory"}, loss, a.memory, a.d_memory), 1e-3);
  once = a.gradients;
  attune::set_zero(a.gradients);
  forward();
  Layer::backward(a.parameters, a.x, a.memory, a.tape, a.dy, attune::NoGradient{}, a.d_memory, a.gradients,
                  a.scratch);
  check::expect_same_set(once, a.gradients);
  forward();
  Layer::backward(a.parameters, a.x, a.memory, a.tape, a.dy, a.dy, a.d_memory, a.gradients, a.scratch);
  check::expect_doubled(once, a.gradients);
  EXPECT_TRUE(check::same_bits(a.dx, a.dy));
}

template <DecoderLayerShape shape>
void check_gradients() {
  if constexpr (check::kDepth >= check::kBoard) {
    check_derivatives<shape>();
  } else {
    check::leave_case();
  }
}

}  // namespace

TEST(DecoderLayer, backward_is_the_derivative_of_forward) {
  check_gradients<kAfter>();
  check_gradients<kBefore>();
}

TEST(DecoderLayer, backward_is_the_derivative_of_forward_with_dropout) {
  check_gradients<with_dropout(kAfter)>();
  check_gradients<with_dropout(kBefore)>();
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
  });
  using Layer = attune::DecoderLayer<DecoderLayerShape{.attention = kSelf, .d_ff = 5, .memory_len = 6}>;
  EXPECT_TRUE((std::is_same_v<Layer::SelfAttention, attune::MultiHeadAttention<kSelf>>));
  EXPECT_TRUE((std::is_same_v<Layer::CrossAttention, attune::MultiHeadAttention<kCross>>));
}
