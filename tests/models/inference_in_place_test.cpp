// Layers whose output takes the memory of their input in inference: the bits are those of separate memory,
// and models need less of it.
#include <attune/attention/sequence_length.hpp>
#include <attune/execution/inference_in_slices.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

constexpr int kTokens = 5, kWidth = 8;
using Tokens = attune::Tensor<float, kTokens, kWidth>;
constexpr attune::AttentionShape kAttention{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2};
template <attune::NormPlacement norm>
using Encoder =
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = kAttention, .d_ff = 12, .norm = norm}>;
using Before = Encoder<attune::NormPlacement::kBefore>;
using After = Encoder<attune::NormPlacement::kAfter>;
using Norm = attune::LayerNorm<attune::NormShape{kTokens, kWidth}>;
using Square = attune::Linear<attune::LinearShape{kTokens, kWidth, kWidth}>;
using Pool = attune::Pooling<attune::PoolingShape{kTokens, kWidth}>;

template <class Layer>
typename Layer::Parameters drawn() {
  typename Layer::Parameters parameters;
  attune::Rng rng(3);
  attune::initialize(parameters, attune::LinearDefault{}, rng);
  return parameters;
}
Tokens tokens() {
  Tokens x;
  attune::Rng rng(5);
  check::fill(x, rng);
  return x;
}

template <class Layer, class Mask = attune::NoMask>
void expect_same_in_place(const Mask& mask = {}) {
  static_assert(attune::detail::ReplacesInput<Layer>);
  static const typename Layer::Parameters parameters = drawn<Layer>();
  static typename Layer::InferenceScratch scratch;
  const Tokens x = tokens();
  Tokens apart, in_place = x, in_slices = x;
  attune::infer<Layer>(parameters, x, apart, scratch, mask);
  attune::infer<Layer>(parameters, in_place, in_place, scratch, mask);
  EXPECT_TRUE(check::same_bits(apart, in_place));
  auto pass = attune::infer_in_slices<Layer, 64>(parameters, in_slices, in_slices, scratch, mask);
  while (pass.advance()) {
  }
  EXPECT_TRUE(check::same_bits(apart, in_slices));
}

// The scratch of a layer and one matrix.
template <class Layer>
struct WithTokens {
  Tokens tokens;
  typename Layer::InferenceScratch scratch;
};

}  // namespace

TEST(InferenceInPlace, attention_and_its_layers_have_the_same_bits) {
  attune::KeyPaddingMask<kTokens> padding;
  attune::SequenceLength<kTokens> length;
  EXPECT_EQ(padding.set_length(3), attune::Status::kOk);
  EXPECT_EQ(length.set_length(3), attune::Status::kOk);
  const auto all_of = [&]<class Layer>() {
    expect_same_in_place<Layer>();
    expect_same_in_place<Layer>(attune::CausalMask{});
    expect_same_in_place<Layer>(padding);
    expect_same_in_place<Layer>(length);
  };
  all_of.operator()<attune::MultiHeadAttention<kAttention>>();
  all_of.operator()<Before>();
  all_of.operator()<After>();
  all_of.operator()<attune::Checkpointed<Before>>();
  all_of.operator()<attune::Repeat<3, Before>>();
  all_of.operator()<attune::Repeat<2, After>>();
}

TEST(InferenceInPlace, a_decoder_layer_has_the_same_bits) {
  constexpr attune::DecoderLayerShape kShape{.attention = kAttention, .d_ff = 12, .memory_len = 4};
  using Decoder = attune::DecoderLayer<kShape>;
  static const Decoder::Parameters parameters = drawn<Decoder>();
  static Decoder::InferenceScratch scratch;
  Decoder::Memory memory;
  attune::Rng rng(7);
  check::fill(memory, rng);
  const Tokens x = tokens();
  Tokens apart, in_place = x;
  Decoder::forward(parameters, x, memory, apart, scratch);
  Decoder::forward(parameters, in_place, memory, in_place, scratch);
  EXPECT_TRUE(check::same_bits(apart, in_place));
}

TEST(InferenceInPlace, models_need_one_matrix_besides_a_layer) {
  static_assert(sizeof(attune::Repeat<4, Before>::InferenceScratch) == sizeof(Before::InferenceScratch));
  using Model = attune::Sequential<Square, Norm, attune::Repeat<4, Before>, Norm, Pool>;
  static_assert(sizeof(Model::InferenceScratch) == sizeof(WithTokens<Before>));
  // A linear layer takes another matrix for its output.
  using Two = attune::Sequential<Norm, Square, Square, Norm, Pool>;
  static_assert(sizeof(Two::InferenceScratch) >= 2 * sizeof(Tokens) &&
                sizeof(Two::InferenceScratch) < 3 * sizeof(Tokens));
}

TEST(InferenceInPlace, a_model_has_the_bits_of_its_layers) {
  // In place behind an even and an odd number of layers that are not.
  using Model = attune::Sequential<Norm, Before, Square, After, Square, attune::Residual<Square>, Norm,
                                   attune::Repeat<2, Before>, attune::Residual<Before>, Norm, Pool>;
  static const Model::Parameters parameters = drawn<Model>();
  static Model::InferenceScratch scratch;
  const Tokens x = tokens();
  Model::Output together, in_slices;
  attune::infer<Model>(parameters, x, together, scratch, attune::CausalMask{});
  auto pass = attune::infer_in_slices<Model, 64>(parameters, x, in_slices, scratch, attune::CausalMask{});
  while (pass.advance()) {
  }
  Tokens from = x, to;
  Model::Output pooled;
  const auto run = [&]<int index>() {
    using Layer = Model::Layer<index>;
    static typename Layer::InferenceScratch own;
    const auto mask = [] {
      if constexpr (attune::detail::TakesMask<Layer> &&
                    !(attune::detail::kAbilities<Layer>.mask == attune::MaskUse::kPadding)) {
        return attune::CausalMask{};
      } else {
        return attune::NoMask{};
      }
    }();
    if constexpr (index + 1 < Model::kLayers) {
      attune::infer<Layer>(parameters.layer<index>(), from, to, own, mask);
      from = to;
    } else {
      attune::infer<Layer>(parameters.layer<index>(), from, pooled, own, mask);
    }
  };
  [&]<int... index>(std::integer_sequence<int, index...>) { (run.template operator()<index>(), ...); }
  (std::make_integer_sequence<int, Model::kLayers>{});
  EXPECT_TRUE(check::same_bits(together, pooled));
  EXPECT_TRUE(check::same_bits(in_slices, pooled));
}

namespace {

// Inherits abilities, but reads x once more behind y.
template <class Layer>
struct PlusInput : Layer {
  using Layer::forward;
  using typename Layer::Input, typename Layer::Output, typename Layer::Parameters;
  template <class Set = Parameters, attune::AnyContext Call = attune::Context<>>
  static void forward(const Set& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      typename Layer::InferenceScratch& scratch, const Call& context = {}) {
    Layer::forward(parameters, x, y, scratch, context);
    for (int i = 0; i < kTokens; ++i) {
      for (int j = 0; j < kWidth; ++j) y(i, j) += x(i, j);
    }
  }
};

template <class Layer>
void expect_sum_in_model() {
  using Model = attune::Sequential<Square, Layer, Square>;
  static const typename Model::Parameters parameters = drawn<Model>();
  static typename Model::InferenceScratch scratch;
  static typename Layer::InferenceScratch own;
  Square::InferenceScratch none;
  const Tokens x = tokens();
  Tokens before, behind, expected, y;
  attune::infer<Square>(parameters.template layer<0>(), x, before, none);
  attune::infer<Layer>(parameters.template layer<1>(), before, behind, own);
  attune::infer<Square>(parameters.template layer<2>(), behind, expected, none);
  attune::infer<Model>(parameters, x, y, scratch);
  EXPECT_TRUE(check::same_bits(expected, y));
}

}  // namespace

TEST(InferenceInPlace, is_not_inherited) {
  expect_sum_in_model<PlusInput<Norm>>();
  expect_sum_in_model<PlusInput<Before>>();
  expect_sum_in_model<PlusInput<attune::MultiHeadAttention<kAttention>>>();
  expect_sum_in_model<attune::Repeat<2, PlusInput<After>>>();
  using Attention = PlusInput<attune::MultiHeadAttention<kAttention>>;
  using Network = PlusInput<attune::FeedForward<attune::FeedForwardShape{kTokens, kWidth, 12}>>;
  using Layer = attune::EncoderLayerOf<Attention, Network, Norm,
                                       attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
  expect_sum_in_model<Layer>();
}

namespace {

using Blocks = attune::Repeat<2, Before>;
const Square::Parameters square = drawn<Square>();
const Norm::Parameters norm = drawn<Norm>();
const Blocks::Parameters blocks = drawn<Blocks>();

}  // namespace

TEST(InferenceInPlace, frozen_layers_before_trained_ones_have_the_same_bits) {
  // They run without a tape, in the memory between layers.
  using Model = attune::Sequential<attune::Frozen<Square, square>, attune::Frozen<Norm, norm>,
                                   attune::Frozen<Blocks, blocks>, Square>;
  using Whole = attune::Sequential<Square, Norm, Blocks, Square>;
  static attune::Trainer<Model, attune::MeanSquaredError> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{2});
  static Whole::Parameters whole;
  whole.layer<0>() = square;
  whole.layer<1>() = norm;
  whole.layer<2>() = blocks;
  whole.layer<3>() = trainer.parameters().layer<3>();
  static Whole::InferenceScratch scratch;
  const Tokens x = tokens();
  Tokens y;
  attune::infer<Whole>(whole, x, y, scratch);
  // The loss against the model's own output is zero only if all bits are the same.
  EXPECT_EQ(trainer.step(x, y, {.learning_rate = 0}).loss, 0.0f);
}
