// Encoder and decoder layers of parts of one's choice.
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::FeedForwardShape;
using attune::NormShape;
using check::check_layer_gradients;

namespace {

// Parts of one's choice, with options that EncoderLayerShape has not.
constexpr attune::AttentionShape kAttention{.seq_len = 3,
                                            .d_model = 6,
                                            .num_heads = 2,
                                            .d_k = 4,
                                            .d_v = 2,
                                            .scaling = attune::Scaling::kInverseSqrtDModel,
                                            .rotary_dim = 2,
                                            .rotary_base = 100};
constexpr attune::AttentionShape kToMemory{
    .seq_len = 3, .d_model = 6, .num_heads = 3, .kv_len = 4, .d_key = 5, .d_value = 5};
using Attention = attune::MultiHeadAttention<kAttention, double>;
using ToMemory = attune::MultiHeadAttention<kToMemory, double>;
using Gated = attune::SwiGlu<FeedForwardShape{.rows = 3, .d_model = 6, .d_ff = 4, .dropout = 0.2}, double>;
using Rms = attune::RmsNorm<NormShape{.rows = 3, .d_model = 6}, double>;
constexpr attune::BranchOptions kBefore{.norm = attune::NormPlacement::kBefore};
constexpr attune::BranchOptions kDropped{.norm = attune::NormPlacement::kAfter, .dropout = 0.3};

}  // namespace

TEST(TransformerParts, of_an_encoder_layer_have_gradients_that_are_derivatives) {
  check_layer_gradients<attune::EncoderLayerOf<Attention, Gated, Rms, kBefore>>(-1, 1);
  check_layer_gradients<attune::EncoderLayerOf<Attention, Gated, Rms, kDropped>>(-1, 1);
  using Plain = attune::SwiGlu<FeedForwardShape{.rows = 3, .d_model = 6, .d_ff = 4}, double>;
  check_layer_gradients<attune::EncoderLayerOf<Attention, Plain, Rms, kBefore>>(-1, 1);
}

namespace {

template <attune::BranchOptions options>
void check_decoder_of_parts() {
  using Layer = attune::DecoderLayerOf<Attention, ToMemory, Gated, Rms, options>;
  static typename Layer::Parameters parameters, gradients;
  static typename Layer::Input x, dx;
  static typename Layer::Memory memory, d_memory;
  static typename Layer::Output y, dy;
  static typename Layer::Tape tape, start;
  static typename Layer::Scratch scratch;
  attune::Rng rng(9);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(memory, rng);
  check::fill(dy, rng);
  attune::set_zero(gradients);
  attune::draw_seeds(start, rng);
  const auto loss = [&] {
    tape = start;
    Layer::forward(parameters, x, memory, y, tape, scratch);
    return check::dot(y, dy);
  };
  (void)loss();
  Layer::backward(parameters, x, memory, tape, dy, dx, d_memory, gradients, scratch);
  EXPECT_GT(check::expect_set_gradients(loss, parameters, gradients), 0.1);
  EXPECT_GT(check::expect_gradient({"x"}, loss, x, dx), 1e-3);
  EXPECT_GT(check::expect_gradient({"memory"}, loss, memory, d_memory), 1e-3);
  static_assert(Layer::Memory::cols == 5);
}

}  // namespace

TEST(TransformerParts, of_a_decoder_layer_have_gradients_that_are_derivatives) {
  check_decoder_of_parts<kBefore>();
  check_decoder_of_parts<kDropped>();
}
