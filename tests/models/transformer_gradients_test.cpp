// The property of gradient_suite.hpp over the layers of a transformer beside attention, which has
// layer_gradients_test.cpp.
#include <attune/attention/rotary_positions.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/layers/softmax.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/training/cross_entropy.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::Activation;
using attune::FeedForwardShape;
using attune::NormShape;
using check::check_layer_gradients;

TEST(TransformerGradients, activations) {
  [&]<int... kinds>(std::integer_sequence<int, kinds...>) {
    (check_layer_gradients<attune::ActivationLayer<Activation{kinds}, 3, 5, double>>(-4, 4), ...);
  }
  (std::make_integer_sequence<int, attune::kActivationCount>());
}

TEST(TransformerGradients, layer_norm) {
  check_layer_gradients<attune::LayerNorm<NormShape{.rows = 4, .d_model = 5}, double>>(-2, 2);
  check_layer_gradients<attune::LayerNorm<NormShape{.rows = 2, .d_model = 18, .bias = false}, double>>(-2, 2);
  check_layer_gradients<attune::LayerNorm<NormShape{.rows = 3, .d_model = 6, .weight = false}, double>>(-2,
                                                                                                        2);
  check_layer_gradients<attune::LayerNorm<NormShape{.rows = 3, .d_model = 6, .epsilon = 0.5}, double>>(-2, 2);
}

TEST(TransformerGradients, rms_norm) {
  check_layer_gradients<attune::RmsNorm<NormShape{.rows = 4, .d_model = 5}, double>>(-2, 2);
  check_layer_gradients<attune::RmsNorm<NormShape{.rows = 3, .d_model = 7, .weight = false}, double>>(-2, 2);
}

TEST(TransformerGradients, feed_forward) {
  constexpr FeedForwardShape kRelu{.rows = 3, .d_model = 4, .d_ff = 6};
  constexpr FeedForwardShape kGelu{
      .rows = 2, .d_model = 5, .d_ff = 3, .activation = Activation::kGelu, .bias = false};
  constexpr FeedForwardShape kDropped{
      .rows = 3, .d_model = 4, .d_ff = 6, .activation = Activation::kSilu, .dropout = 0.4};
  check_layer_gradients<attune::FeedForward<kRelu, double>>(-1, 1);
  check_layer_gradients<attune::FeedForward<kGelu, double>>(-1, 1);
  check_layer_gradients<attune::FeedForward<kDropped, double>>(-1, 1);
}

TEST(TransformerGradients, gated_feed_forward) {
  constexpr FeedForwardShape kShape{.rows = 3, .d_model = 4, .d_ff = 5, .activation = Activation::kGeluTanh};
  constexpr FeedForwardShape kDropped{.rows = 2, .d_model = 3, .d_ff = 7, .bias = false, .dropout = 0.3};
  check_layer_gradients<attune::SwiGlu<kShape, double>>(-1, 1);
  check_layer_gradients<attune::GatedFeedForward<kShape, double>>(-1, 1);
  check_layer_gradients<attune::SwiGlu<kDropped, double>>(-1, 1);
}

namespace {

template <attune::CrossEntropyOptions options>
void check_cross_entropy() {
  using Loss = attune::CrossEntropy<options>;
  attune::Rng rng(19);
  attune::Tensor<double, 4, 5> x, dx, unused;
  attune::Tensor<double, 1, 5> class_weights;
  check::fill(x, rng, -3, 3);
  check::fill(class_weights, rng, 0.1, 2);
  const int targets[] = {4, 0, options.ignore_index, 2};
  const auto plain = [&] { return Loss::forward(x, targets, unused, 0.5).loss; };
  const auto weighted = [&] { return Loss::forward(x, targets, class_weights, unused, 0.5).loss; };
  (void)Loss::forward(x, targets, dx, 0.5);
  EXPECT_GT(check::expect_gradient({"x"}, plain, x, dx), 0.01);
  (void)Loss::forward(x, targets, class_weights, dx, 0.5);
  EXPECT_GT(check::expect_gradient({"x, weighted"}, weighted, x, dx), 0.01);
}

}  // namespace

TEST(TransformerGradients, cross_entropy) {
  using attune::CrossEntropyOptions;
  using attune::Reduction;
  check_cross_entropy<CrossEntropyOptions{}>();
  check_cross_entropy<CrossEntropyOptions{.reduction = Reduction::kSum, .label_smoothing = 0.3}>();
  check_cross_entropy<CrossEntropyOptions{.label_smoothing = 1, .ignore_index = 3}>();
}

TEST(TransformerGradients, log_softmax) { check_layer_gradients<attune::LogSoftmax<3, 5, double>>(-3, 3); }

TEST(TransformerGradients, attention_with_dropout) {
  constexpr attune::AttentionShape kShape{.seq_len = 3, .d_model = 4, .num_heads = 2, .dropout = 0.4};
  check_layer_gradients<attune::MultiHeadAttention<kShape, double>>(-1, 1);
  check_layer_gradients<attune::MultiHeadAttention<kShape, double>>(-1, 1, attune::CausalMask{});
}

TEST(TransformerGradients, attention_with_rotary_positions) {
  constexpr attune::AttentionShape kHalves{.seq_len = 3, .d_model = 8, .num_heads = 2, .rotary_dim = 4};
  constexpr attune::AttentionShape kPart{.seq_len = 4,
                                         .d_model = 5,
                                         .num_heads = 1,
                                         .scaling = attune::Scaling::kInverseFourthRootDkEach,
                                         .rotary_dim = 2,
                                         .rotary_pairs = attune::RotaryPairs::kInterleaved,
                                         .rotary_base = 100,
                                         .dropout = 0.2};
  check_layer_gradients<attune::MultiHeadAttention<kHalves, double>>(-1, 1);
  check_layer_gradients<attune::MultiHeadAttention<kPart, double>>(-1, 1);
}

namespace {

constexpr attune::EncoderLayerShape kNormAfter{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2},
                                               .d_ff = 5};
constexpr attune::EncoderLayerShape kNormBefore{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2},
                                                .d_ff = 5,
                                                .activation = Activation::kGelu,
                                                .norm = attune::NormPlacement::kBefore,
                                                .epsilon = 1e-3};
constexpr attune::EncoderLayerShape with_dropout(attune::EncoderLayerShape shape) {
  shape.attention.dropout = 0.3;
  shape.attention.bias = false;
  shape.epsilon = 0.1;  // a token whose features dropping made nearly equal has a third derivative beyond all
  shape.attention.rotary_dim = 2;
  return shape;
}

}  // namespace

TEST(TransformerGradients, encoder_layer) {
  check_layer_gradients<attune::EncoderLayer<kNormAfter, double>>(-1, 1);
  check_layer_gradients<attune::EncoderLayer<kNormBefore, double>>(-1, 1);
  check_layer_gradients<attune::EncoderLayer<kNormBefore, double>>(-1, 1, attune::CausalMask{});
}

TEST(TransformerGradients, encoder_layer_with_dropout) {
  check_layer_gradients<attune::EncoderLayer<with_dropout(kNormAfter), double>>(-1, 1);
  check_layer_gradients<attune::EncoderLayer<with_dropout(kNormBefore), double>>(-1, 1);
}

namespace {

template <attune::PoolingKind kind>
void check_pooling() {
  using Layer = attune::Pooling<attune::PoolingShape{.seq_len = 5, .d_model = 7, .kind = kind}, double>;
  attune::KeyPaddingMask<5> mask;
  mask.set_valid({false, true, true, false, true});
  check_layer_gradients<Layer>(-3, 3);
  check_layer_gradients<Layer>(-3, 3, mask);
}

}  // namespace

TEST(TransformerGradients, pooling) {
  check_pooling<attune::PoolingKind::kMean>();
  check_pooling<attune::PoolingKind::kMax>();
  check_pooling<attune::PoolingKind::kFirst>();
}

TEST(TransformerGradients, positions) {
  constexpr attune::PositionShape kShape{.seq_len = 3, .d_model = 5};
  constexpr attune::RotaryShape kRotary{.seq_len = 3, .num_heads = 2, .d_k = 5, .rotary_dim = 4};
  constexpr attune::RotaryShape kInterleaved{
      .seq_len = 3, .num_heads = 2, .d_k = 4, .pairs = attune::RotaryPairs::kInterleaved};
  check_layer_gradients<attune::LearnedPositions<kShape, double>>(-1, 1);
  check_layer_gradients<attune::SinusoidalPositions<kShape, double>>(-1, 1);
  check_layer_gradients<attune::RotaryPositions<kRotary, double>>(-1, 1);
  check_layer_gradients<attune::RotaryPositions<kInterleaved, double>>(-1, 1);
}
