// Encoder and decoder layers of parts of one's choice.
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"
#include "drawn_layer.hpp"
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
  static check::DrawnDecoder<Layer> of;
  static typename Layer::Tape start;
  attune::Rng rng(9);
  of.draw(rng);
  attune::draw_seeds(start, rng);
  const auto loss = [&] {
    of.tape = start;
    Layer::forward(of.parameters, of.x, of.memory, of.y, of.tape, of.scratch);
    return check::dot(of.y, of.dy);
  };
  (void)loss();
  Layer::backward(of.parameters, of.x, of.memory, of.tape, of.dy, of.dx, of.d_memory, of.gradients,
                  of.scratch);
  EXPECT_GT(check::expect_set_gradients(loss, of.parameters, of.gradients), 0.1);
  EXPECT_GT(check::expect_gradient({"x"}, loss, of.x, of.dx), 1e-3);
  EXPECT_GT(check::expect_gradient({"memory"}, loss, of.memory, of.d_memory), 1e-3);
  static_assert(Layer::Memory::cols == 5);
}

}  // namespace

TEST(TransformerParts, of_a_decoder_layer_have_gradients_that_are_derivatives) {
  check_decoder_of_parts<kBefore>();
  check_decoder_of_parts<kDropped>();
}
