// A packed tape: backward reads what forward kept, rounded to 8 or 16 bits once, and nothing else.
#include <attune/models/quantized_tape.hpp>

#include <cstring>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "drawn_layer.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::NormPlacement;
using attune::QuantizedTape;
using attune::TapePrecision;
using attune::detail::CopyTape;

constexpr int kTokens = 7, kWidth = 4;
template <NormPlacement norm, bool keep_weights, int percent_dropped = 0>
using Encoder =
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = kTokens,
                                                                 .d_model = kWidth,
                                                                 .num_heads = 2,
                                                                 .dropout = percent_dropped / 100.0,
                                                                 .keep_weights = keep_weights},
                                                   .d_ff = 6,
                                                   .norm = norm}>;
using Before = Encoder<NormPlacement::kBefore, false, 30>;
using After = Encoder<NormPlacement::kAfter, true>;
constexpr attune::AttentionShape kOptions{.seq_len = kTokens,
                                          .d_model = kWidth,
                                          .num_heads = 2,
                                          .num_kv_heads = 1,
                                          .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare,
                                          .score_scale = attune::ScoreScale::kExponential,
                                          .add_bias_kv = true};
using Llama = attune::EncoderLayerOf<
    attune::MultiHeadAttention<kOptions>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 6}>,
    attune::RmsNorm<attune::NormShape{.rows = kTokens, .d_model = kWidth}>,
    attune::BranchOptions{.norm = NormPlacement::kBefore}>;
using Projection = attune::Linear<attune::LinearShape{.rows = kTokens, .d_in = kWidth, .d_out = 5}>;
using Front =
    attune::Sequential<attune::Linear<attune::LinearShape{.rows = kTokens, .d_in = 3, .d_out = kWidth}>,
                       attune::Repeat<2, After>,
                       attune::LayerNorm<attune::NormShape{.rows = kTokens, .d_model = kWidth}>,
                       attune::Pooling<attune::PoolingShape{.seq_len = kTokens, .d_model = kWidth}>>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = kWidth, .d_out = 5}>;
using Model = attune::Sequential<Front, Head>;

Before::Parameters constant_before;
After::Parameters constant_after;

// Rounds the valid rows of a matrix as a packed tape does.
template <TapePrecision precision, class Matrix>
void round_rows(const auto& context, Matrix& matrix) {
  static attune::detail::PackedMatrix<precision, Matrix> packed;
  CopyTape::rows(context, packed, matrix);
  CopyTape::rows(context, matrix, packed);
}
// Rounds the tape of a layer.
template <TapePrecision precision, class Layer, class Gradients = typename Layer::Parameters>
void round_part(const auto& context, typename Layer::template TapeIn<Gradients, attune::Tensor>& tape) {
  static typename Layer::template TapeIn<Gradients, attune::detail::PackedAs<precision>::template Matrix>
      packed;
  attune::detail::copy_tape(context, packed, tape);
  attune::detail::copy_tape(context, tape, packed);
}
template <TapePrecision precision, class Layer, class Tape>
void round_tape(const auto& context, Tape& tape) {
  if constexpr (requires { tape.sums; }) {
    for (auto& sum : tape.sums.elements) round_rows<precision>(context, sum);
    round_part<precision, typename Layer::SelfAttention>(context, tape.self_attention);
    round_part<precision, typename Layer::Network>(context, tape.feed_forward);
  } else if constexpr (!std::is_empty_v<Tape>) {
    round_part<precision, Layer>(context, tape);
  }
}

// backward with a packed tape has the bits of backward with a tape that was rounded in between. It reads
// neither x nor anything that forward left in scratch. Tapes are those of layer `Of`, a part of which may be
// trained.
template <class Layer, TapePrecision precision, class Of = Layer, class Mask = attune::NoMask>
void expect_rounded_backward(const Mask& mask = {}) {
  using Packed =
      typename attune::detail::WithQuantizedTape<Layer, precision, attune::detail::InputFrom::kLayer>::type;
  static check::DrawnLayer<Layer> of;
  static check::DrawnLayer<Packed> packed;
  static_assert(sizeof of.parameters == sizeof packed.parameters);
  attune::Rng rng(1);
  of.draw(rng);
  std::memcpy(static_cast<void*>(&packed.parameters), &of.parameters, sizeof of.parameters);
  attune::set_zero(packed.gradients);
  attune::draw_seeds(of.tape, rng);
  attune::detail::copy_masks(of.tape, packed.tape);
  attune::forward<Packed>(packed.parameters, of.x, packed.y, packed.tape, packed.scratch, mask);
  attune::forward<Layer>(of.parameters, of.x, of.y, of.tape, of.scratch, mask);
  EXPECT_TRUE(check::same_bits(packed.y, of.y));

  const auto context = attune::context_for<Layer>(mask);
  round_tape<precision, Of>(context, of.tape);
  round_rows<precision>(context, of.x);
  attune::backward<Layer>(of.parameters, of.x, of.tape, of.dy, of.dx, of.gradients, of.scratch, mask);
  std::memset(static_cast<void*>(&packed.scratch), 0xFF, sizeof packed.scratch);
  std::memset(static_cast<void*>(&packed.x), 0xFF, sizeof packed.x);
  attune::backward<Packed>(packed.parameters, packed.x, packed.tape, of.dy, packed.dx, packed.gradients,
                           packed.scratch, mask);
  EXPECT_TRUE(check::same_bits(packed.dx, of.dx));
  EXPECT_EQ(std::memcmp(&packed.gradients, &of.gradients, sizeof of.gradients), 0);
  // The next sequence draws the same masks.
  attune::forward<Packed>(packed.parameters, of.dx, packed.y, packed.tape, packed.scratch, mask);
  attune::forward<Layer>(of.parameters, of.dx, of.y, of.tape, of.scratch, mask);
  EXPECT_TRUE(check::same_bits(packed.y, of.y));
}

// The same for a decoder layer and its memory.
template <class Layer, TapePrecision precision>
void expect_rounded_backward_of_a_decoder(int length, int memory_length) {
  using Packed = QuantizedTape<Layer, precision>;
  static check::DrawnDecoder<Layer> of;
  static check::DrawnDecoder<Packed> packed;
  attune::Rng rng(1);
  of.draw(rng);
  attune::SequenceLength<Layer::Input::rows> mask;
  attune::SequenceLength<Layer::Memory::rows> memory_mask;
  ASSERT_EQ(mask.set_length(length), attune::Status::kOk);
  ASSERT_EQ(memory_mask.set_length(memory_length), attune::Status::kOk);
  attune::forward<Packed>(of.parameters, of.x, of.memory, packed.y, packed.tape, packed.scratch, mask,
                          memory_mask);
  attune::forward<Layer>(of.parameters, of.x, of.memory, of.y, of.tape, of.scratch, mask, memory_mask);
  EXPECT_TRUE(check::same_bits(packed.y, of.y));

  const auto context = attune::decoder_context_for<Layer>(mask, memory_mask);
  round_tape<precision, Layer>(context.tokens, of.tape);
  round_part<precision, typename Layer::CrossAttention>(context.cross, of.tape.cross_attention);
  round_rows<precision>(context.tokens, of.x);
  attune::backward<Layer>(of.parameters, of.x, of.memory, of.tape, of.dy, of.dx, of.d_memory, of.gradients,
                          of.scratch, mask, memory_mask);
  std::memset(static_cast<void*>(&packed.scratch), 0xFF, sizeof packed.scratch);
  std::memset(static_cast<void*>(&packed.x), 0xFF, sizeof packed.x);
  attune::backward<Packed>(of.parameters, packed.x, of.memory, packed.tape, of.dy, packed.dx, packed.d_memory,
                           packed.gradients, packed.scratch, mask, memory_mask);
  EXPECT_TRUE(check::same_bits(packed.dx, of.dx));
  EXPECT_TRUE(check::same_bits(packed.d_memory, of.d_memory));
  EXPECT_TRUE(check::same_bits(packed.gradients, of.gradients));
}

template <class Trained, int batch, class Plan = attune::BySequence>
using Training = attune::Trainer<Trained, attune::CrossEntropy<>, attune::AdamW, batch, Plan>;

}  // namespace

TEST(QuantizedTape, backward_reads_the_rounded_tape) {
  expect_rounded_backward<Before, TapePrecision::kInt8>();
  expect_rounded_backward<After, TapePrecision::kInt8, After>(attune::CausalMask{});
  expect_rounded_backward<Llama, TapePrecision::kBfloat16>();
}

TEST(QuantizedTape, has_the_bits_of_a_rounded_tape_with_a_length) {
  attune::SequenceLength<kTokens> length;
  ASSERT_EQ(length.set_length(5), attune::Status::kOk);
  expect_rounded_backward<Before, TapePrecision::kInt8, Before>(length);
  expect_rounded_backward<After, TapePrecision::kInt8, After>(length);
  if constexpr (!check::kQuickBuild) {
    expect_rounded_backward<Llama, TapePrecision::kBfloat16, Llama>(length);
  } else {
    check::leave_case();
  }
}

TEST(QuantizedTape, keeps_only_the_tape_of_the_trained_part) {
  attune::Rng rng(7);
  check::fill_set(constant_before, rng);
  check::fill_set(constant_after, rng);
  constexpr attune::LowRank kFactors{.rank = 2, .roles = attune::Role::kQueries | attune::Role::kValues};
  expect_rounded_backward<attune::Adapted<Before, constant_before, kFactors>, TapePrecision::kInt8, Before>();
  expect_rounded_backward<attune::BiasesAndNorms<After, constant_after>, TapePrecision::kInt8, After>();
}

TEST(QuantizedTape, of_a_decoder_layer_knows_the_length_of_its_memory) {
  constexpr attune::DecoderLayerShape kDecoder{
      .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, .d_ff = 6, .memory_len = kTokens};
  expect_rounded_backward_of_a_decoder<attune::DecoderLayer<kDecoder>, TapePrecision::kInt8>(3, 6);
}

TEST(QuantizedTape, packs_the_tape_of_any_layer) {
  expect_rounded_backward<After::SelfAttention, TapePrecision::kInt8>();
  expect_rounded_backward<Before::Network, TapePrecision::kInt8>();
  expect_rounded_backward<Projection, TapePrecision::kBfloat16>();
}

TEST(QuantizedTape, resumes_the_state_of_a_model_without) {
  using Plain = Training<Model, 1>;
  using Packed = Training<QuantizedTape<Model>, 1>;
  static Plain plain;
  static Packed packed;
  static check::Batch<Plain> data(1);
  plain.initialize(attune::XavierUniform{}, attune::Rng{3});
  ASSERT_TRUE(plain.step(data.x, data.target, {.learning_rate = 0.01f}).ok());
  static_assert(sizeof(Packed::State) == sizeof(Plain::State));
  EXPECT_EQ(packed.resume([&](Packed::State& state) {
    std::memcpy(static_cast<void*>(&state), &plain.state(), sizeof state);
    return attune::Status::kOk;
  }),
            attune::Status::kOk);
  EXPECT_EQ(packed.step(data.x, data.target, {.learning_rate = 0.01f}).status, attune::Status::kOk);
}

TEST(QuantizedTape, keeps_a_quarter_or_a_half) {
  using Layer = Encoder<NormPlacement::kBefore, true>;
  using Tokens = Layer::Input;
  static_assert(sizeof(attune::detail::PackedMatrix<TapePrecision::kInt8, Tokens>) ==
                sizeof(Tokens) / 4 + 4 * kTokens);
  static_assert(sizeof(attune::detail::PackedMatrix<TapePrecision::kBfloat16, Tokens>) == sizeof(Tokens) / 2);
  constexpr std::size_t kStatistics = 2 * sizeof(Layer::Norm::Tape);
  // The tape without x, and with it.
  static_assert(sizeof(QuantizedTape<Layer, TapePrecision::kBfloat16>::Tape) ==
                (sizeof(Layer::Tape) - kStatistics + sizeof(Tokens)) / 2 + kStatistics);
  // A recomputed layer has no tape of its own, whatever it inherits.
  using Recomputed = attune::Checkpointed<Layer::SelfAttention>;
  static_assert(sizeof(QuantizedTape<attune::Repeat<2, Recomputed>>::Tape) ==
                2 * sizeof(attune::detail::PackedMatrix<TapePrecision::kInt8, Tokens>));
  // Nothing is kept between packed layers, and what has nothing to pack stays as it is.
  static_assert(sizeof(QuantizedTape<attune::Repeat<3, Layer>>::Tape) ==
                3 * sizeof(QuantizedTape<Layer>::Tape));
  static_assert(std::is_same_v<QuantizedTape<Model>::Layer<1>, Head>);
  // The caller keeps the model's input.
  static_assert(std::is_same_v<QuantizedTape<Front>::Layer<0>, Front::Layer<0>>);
  static_assert(std::is_same_v<QuantizedTape<QuantizedTape<Model>>, QuantizedTape<Model>>);
}
