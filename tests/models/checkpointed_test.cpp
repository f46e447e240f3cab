// A layer whose tape is computed once more in backward: its derivatives and its memory.
#include <attune/models/checkpointed.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Checkpointed;

template <class Scalar, int percent_dropped = 0>
using Encoder = attune::EncoderLayer<
    attune::EncoderLayerShape{
        .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2, .dropout = percent_dropped / 100.0},
        .d_ff = 5},
    Scalar>;
template <class Scalar>
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, Scalar>;
using Words =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 4}>,
                       Encoder<float>>;

}  // namespace

TEST(Checkpointed, gradients_are_derivatives) {
  check::check_layer_gradients<Checkpointed<Attention<double>>>(-1, 1);
  check::check_layer_gradients<attune::Repeat<3, Checkpointed<Encoder<double>>>>(-1, 1);
  check::check_layer_gradients<Checkpointed<Encoder<double, 30>>>(-1, 1);
}

TEST(Checkpointed, refuses_the_ids_that_the_layer_refuses) {
  static attune::Trainer<Checkpointed<Words>> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{3});
  static Words::Input ids{1, 2, 5};
  static Words::Output y;
  EXPECT_EQ(trainer.predict(ids, y), attune::Status::kInvalidToken);
  EXPECT_EQ(trainer.step(ids, y, {.learning_rate = 0.01f}).status, attune::Status::kInvalidToken);
}

TEST(Checkpointed, has_one_tape_for_any_number_of_repeats) {
  using Layer = Encoder<float>;
  static_assert(std::is_empty_v<Checkpointed<Layer>::Tape>);
  static_assert(sizeof(Checkpointed<Encoder<float, 30>>::Tape) == 4 * sizeof(attune::DropoutTape));
  static_assert(sizeof(attune::Repeat<4, Checkpointed<Layer>>::Tape) == 3 * sizeof(Layer::Output));
  static_assert(sizeof(attune::Repeat<4, Checkpointed<Layer>>::Scratch) ==
                sizeof(Checkpointed<Layer>::Scratch));  // gradients take the place of inputs
  static_assert(sizeof(attune::Repeat<4, Layer>::Tape) ==
                4 * sizeof(Layer::Tape) + 3 * sizeof(Layer::Output));
}

TEST(Checkpointed, has_the_tape_of_one_branch_at_a_time) {
  constexpr attune::EncoderLayerShape kShape{.attention = {.seq_len = 8, .d_model = 4, .num_heads = 2},
                                             .d_ff = 32,
                                             .norm = attune::NormPlacement::kBefore};
  using Layer = attune::EncoderLayer<kShape>;
  using Network = Layer::Network;
  using Tokens = Layer::Output;
  static_assert(sizeof(Network::Tape) + sizeof(Network::Scratch) >
                sizeof(Layer::SelfAttention::Tape) + sizeof(Layer::SelfAttention::Scratch));
  // A residual sum, statistics of two norms, and the larger branch; what a norm gave lies in its scratch.
  static_assert(sizeof(Checkpointed<Layer>::Scratch) == sizeof(Tokens) + 2 * sizeof(Layer::Norm::Tape) +
                                                            sizeof(Network::Tape) + sizeof(Network::Scratch));
}

TEST(Checkpointed, keeps_no_sum_of_a_later_branch) {
  using Layer = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 8, .d_model = 4, .num_heads = 2}, .d_ff = 4}>;
  using Attention = Layer::SelfAttention;
  // The first branch is the larger one: its tokens are the layer's input, and no norm wrote them.
  static_assert(sizeof(Layer::Scratch) == sizeof(Attention::Scratch));
  static_assert(sizeof(Checkpointed<Layer>::Scratch) ==
                sizeof(Layer::Output) + 2 * sizeof(Layer::Norm::Tape) + sizeof(Attention::Tape) +
                    sizeof(Attention::Scratch));
}
