// The property of gradient_suite.hpp over the layers of a transformer beside attention, which has
// layer_gradients_test.cpp.
#include <attune/activation.hpp>
#include <attune/feed_forward.hpp>
#include <attune/layer_norm.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::Activation;
using attune::FeedForwardShape;
using attune::NormShape;
using check::check_layer_gradients;
using check::LossOf;

TEST(TransformerGradients, activations) {
  check_layer_gradients<attune::Relu<3, 5, double>>(-3, 3);
  check_layer_gradients<attune::Silu<3, 5, double>>(-6, 6);
  check_layer_gradients<attune::Gelu<3, 5, double>>(-4, 4);
  check_layer_gradients<attune::GeluTanh<3, 5, double>>(-4, 4);
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
  check_layer_gradients<attune::FeedForward<kDropped, double>, LossOf::kTraining>(-1, 1);
}

TEST(TransformerGradients, gated_feed_forward) {
  constexpr FeedForwardShape kShape{.rows = 3, .d_model = 4, .d_ff = 5, .activation = Activation::kGeluTanh};
  constexpr FeedForwardShape kDropped{.rows = 2, .d_model = 3, .d_ff = 7, .bias = false, .dropout = 0.3};
  check_layer_gradients<attune::SwiGlu<kShape, double>>(-1, 1);
  check_layer_gradients<attune::GatedFeedForward<kShape, double>>(-1, 1);
  check_layer_gradients<attune::SwiGlu<kDropped, double>, LossOf::kTraining>(-1, 1);
}
