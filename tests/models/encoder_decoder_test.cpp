// EncoderDecoder: a model with two inputs, against its parts called by hand, and in all that models do.
#include <attune/models/encoder_decoder.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "lengths.hpp"

namespace {

using attune::EncoderDecoder, attune::EncoderDecoderMask, attune::Repeat, attune::Sequential, attune::Status;

constexpr int kSource = 5, kTarget = 3, kWidth = 4, kTokens = 6;
constexpr attune::EncoderLayerShape encoder(bool drops) {
  return {.attention = {.seq_len = kSource, .d_model = kWidth, .num_heads = 2, .dropout = drops ? 0.3 : 0},
          .d_ff = 6,
          .norm = attune::NormPlacement::kBefore,
          .epsilon = 0.1};
}
constexpr attune::DecoderLayerShape decoder(bool drops) {
  return {.attention = {.seq_len = kTarget, .d_model = kWidth, .num_heads = 2, .dropout = drops ? 0.3 : 0},
          .d_ff = 6,
          .memory_len = kSource,
          .epsilon = 0.1};
}
template <class Scalar = float, bool drops = false>
using Encoder = Sequential<Repeat<2, attune::EncoderLayer<encoder(drops), Scalar>>,
                           attune::LayerNorm<attune::NormShape{kSource, kWidth, 0.1}, Scalar>>;
template <class Scalar = float, bool drops = false>
using Decoder = Sequential<Repeat<2, attune::DecoderLayer<decoder(drops), Scalar>>,
                           attune::Linear<attune::LinearShape{kTarget, kWidth, 2}, Scalar>>;
template <class Scalar = float, bool drops = false>
using Matrices = EncoderDecoder<Encoder<Scalar, drops>, Decoder<Scalar, drops>>;

template <int tokens>
using Embed = Sequential<
    attune::Embedding<attune::EmbeddingShape{.seq_len = tokens, .vocabulary = kTokens, .d_model = kWidth}>,
    attune::LearnedPositions<attune::PositionShape{tokens, kWidth}>>;
using Head = attune::Linear<attune::LinearShape{kTarget, kWidth, kTokens}>;
using Translator =
    EncoderDecoder<Sequential<Embed<kSource>, Encoder<>>,
                   Sequential<Embed<kTarget>, Repeat<2, attune::DecoderLayer<decoder(false)>>, Head>>;
static_assert(std::is_same_v<Matrices<>::Input, attune::Tensor<float, kSource + kTarget, kWidth>>);
static_assert(std::is_same_v<Translator::Input, std::array<int, kSource + kTarget>>);
static_assert(std::is_same_v<Matrices<>::WithScalar<double>, Matrices<double>>);

using Lengths = EncoderDecoderMask<attune::SequenceLength<kSource>,
                                   decltype(attune::CausalMask{} && attune::SequenceLength<kTarget>{})>;
Lengths of_lengths(int source, int target) {
  return EncoderDecoderMask{
      check::of_length<attune::SequenceLength<kSource>>(source),
      attune::CausalMask{} && check::of_length<attune::SequenceLength<kTarget>>(target)};
}

// The last tokens of the source, in reverse.
struct Sentence {
  Translator::Input ids;
  std::array<int, kTarget> next;
  explicit Sentence(attune::Rng& rng) {
    for (int i = 0; i < kSource; ++i) ids[std::size_t(i)] = 1 + static_cast<int>(rng.next() % (kTokens - 1));
    for (int i = 0; i < kTarget; ++i) {
      next[std::size_t(i)] = ids[std::size_t(kSource - 1 - i)];
      ids[std::size_t(kSource + i)] = i == 0 ? 0 : next[std::size_t(i - 1)];
    }
  }
};

template <class Model, class Plan = attune::BySequence, int batch = 1>
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, batch, Plan>;
constexpr attune::AdamW::Options kOptions{.learning_rate = 0.01f};

template <class Trainer>
Trainer& fresh() {
  static Trainer trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{5});
  return trainer;
}
// Three steps of both, with the same bits.
template <class One, class Other>
void expect_same_steps(const auto& mask) {
  auto& one = fresh<One>();
  auto& other = fresh<Other>();
  attune::Rng rng(3);
  for (int step = 0; step < 3; ++step) {
    const Sentence sentence(rng);
    EXPECT_TRUE(one.step(sentence.ids, sentence.next, kOptions, attune::NoClipping{}, mask).ok());
    EXPECT_TRUE(other.step(sentence.ids, sentence.next, kOptions, attune::NoClipping{}, mask).ok());
    EXPECT_TRUE(check::same_bits(one.parameters(), other.parameters()));
  }
}

// Adapted in the layers at its ends alone: the decoder layer, with constant weights, still gives the gradient
// of its memory.
using WithEnds = EncoderDecoder<
    Sequential<attune::Linear<attune::LinearShape{kSource, kWidth, kWidth}, double>, Encoder<double>>,
    Decoder<double>>;
WithEnds::Parameters ends;
using AtTheEnds =
    attune::Adapted<WithEnds, ends, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;

Translator::Parameters constants;
Translator::Encoder::Parameters encoder_constants;
Translator::Decoder::Parameters decoder_constants;
using OfEncoder = EncoderDecoder<Translator::Encoder, attune::Frozen<Translator::Decoder, decoder_constants>>;
void fill_constants() {
  attune::Rng rng(7);
  constants.initialize(attune::XavierUniform{}, rng);
  encoder_constants = constants.encoder;
  decoder_constants = constants.decoder;
}

}  // namespace

TEST(EncoderDecoder, backward_is_the_derivative_of_forward) {
  check::check_layer_gradients<Matrices<double>>(-1, 1, of_lengths(kSource, kTarget));
  check::check_layer_gradients<Matrices<double>>(-1, 1, of_lengths(3, 2));
  if constexpr (!check::kQuickBuild) {
    check::check_layer_gradients<Matrices<double, true>>(-1, 1);
  } else {
    check::leave_case();
  }
  attune::Rng rng(9);
  check::fill_set(ends, rng);
  check::check_layer_gradients<AtTheEnds>(-1, 1);
}

TEST(EncoderDecoder, is_its_parts_called_by_hand) {
  using Model = Matrices<>;
  using Layer = attune::DecoderLayer<decoder(false)>;
  static Model::Parameters parameters, gradients, expected;
  static Model::Tape tape;
  static Model::Scratch scratch;
  Model::Input x, dx;
  Model::Output y, dy;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  attune::KeyPaddingMask<kSource> padding;
  EXPECT_EQ(padding.set_length(4), Status::kOk);
  const EncoderDecoderMask mask{padding};
  attune::forward<Model>(parameters, x, y, tape, scratch, mask);
  attune::backward<Model>(parameters, x, tape, dy, dx, gradients, scratch, mask);

  static Encoder<>::Tape of_encoder;
  static Encoder<>::Scratch encoder_scratch;
  static Layer::Tape of_layer[2];
  static Layer::Scratch layer_scratch;
  const auto source = attune::view(x).rows_at<kSource>(0);
  Encoder<>::Output memory, d_memory, d_first;
  Layer::Output h[2], d_h[2], d_target;
  const auto& layers = parameters.decoder.layer<0>().layers;
  auto& d_layers = expected.decoder.layer<0>().layers;
  attune::forward<Encoder<>>(parameters.encoder, source, memory, of_encoder, encoder_scratch, padding);
  attune::forward<Layer>(layers[0], attune::view(x).rows_at<kTarget>(kSource), memory, h[0], of_layer[0],
                         layer_scratch, attune::CausalMask{}, padding);
  attune::forward<Layer>(layers[1], h[0], memory, h[1], of_layer[1], layer_scratch, attune::CausalMask{},
                         padding);
  using Last = Decoder<>::Layer<1>;
  Last::Tape none;
  Last::Scratch no_scratch;
  Last::Output of_last;
  Last::forward(parameters.decoder.layer<1>(), h[1], of_last, none, no_scratch);
  EXPECT_TRUE(check::same_bits(y, of_last));
  Last::backward(parameters.decoder.layer<1>(), h[1], none, dy, d_h[1], expected.decoder.layer<1>(),
                 no_scratch);
  attune::backward<Layer>(layers[1], h[0], memory, of_layer[1], d_h[1], d_h[0], d_memory, d_layers[1],
                          layer_scratch, attune::CausalMask{}, padding);
  attune::backward<Layer>(layers[0], attune::view(x).rows_at<kTarget>(kSource), memory, of_layer[0], d_h[0],
                          d_target, d_first, d_layers[0], layer_scratch, attune::CausalMask{}, padding);
  for (int i = 0; i < d_memory.size; ++i) d_memory.values[i] += d_first.values[i];
  Encoder<>::Input d_source;
  attune::backward<Encoder<>>(parameters.encoder, source, of_encoder, d_memory, d_source, expected.encoder,
                              encoder_scratch, padding);
  EXPECT_TRUE(check::same_bits(gradients, expected));
  EXPECT_EQ(std::memcmp(dx.data(), d_source.data(), sizeof d_source), 0);
  EXPECT_EQ(std::memcmp(dx.data() + d_source.size, d_target.data(), sizeof d_target), 0);
}

TEST(EncoderDecoder, learns_to_reverse_and_refuses_ids_of_no_token) {
  auto& trainer = fresh<Trainer<Translator, attune::BySequence, 8>>();
  attune::Rng rng(2);
  float first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    for (int s = 0; s < 8; ++s) {
      const Sentence sentence(rng);
      EXPECT_TRUE(trainer.accumulate(sentence.ids, sentence.next).ok());
    }
    last = trainer.update({.learning_rate = 0.02f}).loss;
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.7f * first);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), check::by_policy(0xCBF869A1u, 0x7C98A15Cu));
  Sentence wrong(rng);
  Translator::Output y;
  y(0, 0) = 3;
  for (const std::size_t place : {std::size_t{0}, std::size_t{kSource + 1}}) {
    const int kept = wrong.ids[place];
    wrong.ids[place] = kTokens;
    EXPECT_EQ(trainer.predict(wrong.ids, y), Status::kInvalidToken);
    EXPECT_EQ(trainer.accumulate(wrong.ids, wrong.next).status, Status::kInvalidToken);
    EXPECT_EQ(y(0, 0), 3);
    wrong.ids[place] = kept;
  }
}

TEST(EncoderDecoder, has_the_bits_of_padding_by_length) {
  using Model = Matrices<>;
  static Model::Parameters parameters, gradients[2];
  static Model::Tape tape;
  static Model::Scratch scratch;
  Model::Input x, dx[2];
  Model::Output y[2], dy;
  attune::Rng rng(4);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  for (int j = 0; j < 2; ++j) dy(kTarget - 1, j) = 0;
  const EncoderDecoderMask padding{
      check::of_length<attune::KeyPaddingMask<kSource>>(3),
      attune::CausalMask{} && check::of_length<attune::KeyPaddingMask<kTarget>>(2)};
  const auto pass = [&](int i, const auto& mask) {
    attune::forward<Model>(parameters, x, y[i], tape, scratch, mask);
    attune::backward<Model>(parameters, x, tape, dy, dx[i], gradients[i], scratch, mask);
  };
  pass(0, padding);
  check::fill_behind(dy, 2, check::kNan<float>);
  for (const int behind : {3, 4, kSource + 2}) {
    for (int j = 0; j < kWidth; ++j) x(behind, j) = check::kNan<float>;
  }
  pass(1, of_lengths(3, 2));
  EXPECT_TRUE(check::same_bits(gradients[0], gradients[1]));
  check::expect_same_and_zeros_behind(y[1], y[0], 2);
  for (int i = 0; i < kSource + kTarget; ++i) {
    const bool valid = i < 3 || (i >= kSource && i < kSource + 2);
    for (int j = 0; j < kWidth; ++j) EXPECT_EQ(dx[1](i, j), valid ? dx[0](i, j) : 0.0f);
  }
}

TEST(EncoderDecoder, has_the_bits_of_every_plan_and_of_slices) {
  using Plain = Trainer<Translator>;
  expect_same_steps<Plain, Trainer<Translator, attune::UpdateInBackward>>(of_lengths(kSource, kTarget));
  expect_same_steps<Plain, Trainer<Translator, attune::UpdateInBackward>>(of_lengths(4, 2));
  auto& at_once = fresh<Plain>();
  static Plain in_slices;
  in_slices.initialize(attune::XavierUniform{}, attune::Rng{5});
  attune::Rng rng(6);
  const Sentence sentence(rng);
  const auto mask = of_lengths(4, 2);
  EXPECT_TRUE(at_once.accumulate(sentence.ids, sentence.next, mask).ok());
  auto pass = in_slices.accumulate_in_slices<64>(sentence.ids, sentence.next, mask);
  int slices = 0;
  while (pass.advance()) ++slices;
  EXPECT_GT(slices, 40);
  EXPECT_TRUE(pass.result().ok());
  EXPECT_TRUE(check::same_bits(at_once.gradients(), in_slices.gradients()));
  Translator::Input wrong = sentence.ids;
  wrong[kSource] = -1;
  in_slices.discard();
  auto refused = in_slices.accumulate_in_slices<64>(wrong, sentence.next, mask);
  while (refused.advance()) {
  }
  EXPECT_EQ(refused.result().status, Status::kInvalidToken);
}

template <attune::CachePrecision precision, class Products>
void expect_tokens_of_sequence(const Products& products) {
  fill_constants();
  using Cache =
      attune::KeyValueCache<OfEncoder, attune::CacheShape{.capacity = kTarget, .precision = precision}>;
  static OfEncoder::Parameters parameters;
  static OfEncoder::InferenceScratch scratch;
  static OfEncoder::EncoderScratch encoder_scratch;
  static Cache cache;
  static typename Cache::template Scratch<> step_scratch;
  parameters.encoder = constants.encoder;
  const auto padding = check::of_length<attune::KeyPaddingMask<kSource>>(4);
  attune::Rng rng(10);
  for (int round = 0; round < 2; ++round) {
    Sentence sentence(rng);
    OfEncoder::Output y;
    attune::Tensor<float, 1, kTokens> row;
    EXPECT_EQ(
        attune::infer<OfEncoder>(parameters, sentence.ids, y, scratch, EncoderDecoderMask{padding}, products),
        Status::kOk);
    const int* const target = sentence.ids.data() + kSource;
    if (round == 0) {
      EXPECT_EQ(OfEncoder::step(parameters, target[0], row, cache, step_scratch, padding),
                Status::kNothingRemembered);
    }
    std::array<int, kSource> source;
    std::copy_n(sentence.ids.begin(), kSource, source.begin());
    EXPECT_EQ(OfEncoder::remember(parameters, source, cache, encoder_scratch, padding), Status::kOk);
    for (int t = 0; t < kTarget; ++t) {
      EXPECT_EQ(OfEncoder::step(parameters, target[t], row, cache, step_scratch, padding), Status::kOk);
      EXPECT_EQ(std::memcmp(row.data(), &y(t, 0), sizeof row), 0);
    }
    EXPECT_EQ(OfEncoder::step(parameters, target[0], row, cache, step_scratch, padding), Status::kCacheFull);
    cache.reset();
    source[1] = kTokens;
    EXPECT_EQ(OfEncoder::remember(parameters, source, cache, encoder_scratch, padding),
              Status::kInvalidToken);
  }
}

TEST(EncoderDecoder, decodes_token_by_token_with_the_bits_of_the_sequence) {
  expect_tokens_of_sequence<attune::CachePrecision::kScalar>(attune::FloatProducts{});
}
TEST(EncoderDecoder, decodes_from_a_cache_in_8_bits_with_the_bits_of_integers) {
  expect_tokens_of_sequence<attune::CachePrecision::kInt8>(attune::Int8CacheProducts{});
}

TEST(EncoderDecoder, takes_weights_of_8_bits) {
  fill_constants();
  static Translator::ParametersOf<attune::Int8Weights, attune::Tensor> quantized;
  static Translator::Parameters dequantized;
  static Translator::InferenceScratch scratch;
  EXPECT_EQ(attune::quantize(constants, quantized), Status::kOk);
  attune::copy_parameters(quantized, dequantized);
  attune::Rng rng(11);
  const Sentence sentence(rng);
  Translator::Output expected, y;
  EXPECT_EQ(Translator::forward(dequantized, sentence.ids, expected, scratch), Status::kOk);
  EXPECT_EQ(Translator::forward(quantized, sentence.ids, y, scratch), Status::kOk);
  for (int i = 0; i < y.size; ++i) EXPECT_NEAR(y.values[i], expected.values[i], 1e-5f);
}

namespace {

template <class Model>
const typename Model::Parameters& gradients_of(const typename Model::Input& x,
                                               const typename Model::Output& y) {
  static attune::Trainer<Model> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{5});
  EXPECT_TRUE(trainer.accumulate(x, y).ok());
  return trainer.gradients();
}

}  // namespace

TEST(EncoderDecoder, recomputes_and_packs_tapes) {
  using Model = Matrices<>;
  using Recomputed = EncoderDecoder<
      Encoder<>,
      Sequential<Repeat<2, attune::Checkpointed<attune::DecoderLayer<decoder(false)>>>, Decoder<>::Layer<1>>>;
  using Packed = attune::QuantizedTape<Model, attune::TapePrecision::kBfloat16>;
  static_assert(sizeof(Recomputed::Tape) < sizeof(Model::Tape) && sizeof(Packed::Tape) < sizeof(Model::Tape));
  Model::Input x;
  Model::Output y;
  attune::Rng rng(12);
  check::fill(x, rng);
  check::fill(y, rng);
  const auto& expected = gradients_of<Model>(x, y);
  if constexpr (check::kDepth >= check::kFullHost) {
    EXPECT_EQ(attune::hash_bits(expected), attune::hash_bits(gradients_of<Recomputed>(x, y)));
  }
  float difference = 0, all = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath&, const auto& one, const auto& other) {
        for (int i = 0; i < one.size; ++i) {
          const float off = one.values[i] - other.values[i];
          difference += off * off;
          all += one.values[i] * one.values[i];
        }
      },
      expected, gradients_of<Packed>(x, y));
  EXPECT_GT(difference, 0.0f);
  EXPECT_LT(difference, 1e-4f * all);
}

TEST(EncoderDecoder, trains_a_part_next_to_constants) {
  fill_constants();
  using Whole = Trainer<Translator, attune::BySequence, 8>;
  static Whole whole;
  (void)whole.load([](auto& parameters) {
    parameters = constants;
    return Status::kOk;
  });
  attune::Rng rng(8);
  const Sentence sentence(rng);
  EXPECT_TRUE(whole.accumulate(sentence.ids, sentence.next).ok());
  // Each part has the gradients that it has in the whole.
  const auto expect_gradients_of_the_whole = [&]<class Model>(Model, const auto& part) {
    static Trainer<Model, attune::BySequence, 8> trainer;
    (void)trainer.load([&](auto& parameters) {
      part(parameters) = part(constants);
      return Status::kOk;
    });
    EXPECT_TRUE(trainer.accumulate(sentence.ids, sentence.next).ok());
    EXPECT_TRUE(check::same_bits(part(trainer.gradients()), part(whole.gradients())));
    EXPECT_LT(sizeof trainer, sizeof whole);
  };
  expect_gradients_of_the_whole(
      OfEncoder{}, [](auto& set) -> auto& { return set.encoder; });
  if constexpr (check::kDepth >= check::kFullHost) {
    using OfDecoder =
        EncoderDecoder<attune::Frozen<Translator::Encoder, encoder_constants>, Translator::Decoder>;
    expect_gradients_of_the_whole(
        OfDecoder{}, [](auto& set) -> auto& { return set.decoder; });
  }
  // Factors in all parts.
  if constexpr (!check::kQuickBuild) {
    using Adapted = attune::Adapted<Translator, constants, attune::LowRank{.rank = 2}>;
    expect_same_steps<Trainer<Adapted>, Trainer<Adapted, attune::UpdateInBackward>>(attune::NoMask{});
  } else {
    check::leave_case();
  }
}
