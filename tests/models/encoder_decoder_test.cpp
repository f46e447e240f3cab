// EncoderDecoder: derivatives, refused ids, streams against a batch, and the memory of tapes.
#include <algorithm>

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

// Adapted in the layers at its ends alone: the decoder layer, with constant weights, still gives the gradient
// of its memory.
using WithEnds = EncoderDecoder<
    Sequential<attune::Linear<attune::LinearShape{kSource, kWidth, kWidth}, double>, Encoder<double>>,
    Decoder<double>>;
WithEnds::Parameters ends;
using AtTheEnds =
    attune::Adapted<WithEnds, ends, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;

Translator::Parameters constants;
Translator::Decoder::Parameters decoder_constants;
using OfEncoder = EncoderDecoder<Translator::Encoder, attune::Frozen<Translator::Decoder, decoder_constants>>;
void fill_constants() {
  attune::Rng rng(7);
  constants.initialize(attune::XavierUniform{}, rng);
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

TEST(EncoderDecoder, refuses_ids_of_no_token) {
  static attune::Trainer<Translator, attune::CrossEntropy<>> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{5});
  attune::Rng rng(2);
  Sentence wrong(rng);
  Translator::Output y;
  y(0, 0) = 3;
  for (const std::size_t place : {std::size_t{0}, std::size_t{kSource + 1}}) {
    const int kept = wrong.ids[place];
    wrong.ids[place] = kTokens;
    EXPECT_EQ(trainer.predict(wrong.ids, y), Status::kInvalidToken);
    EXPECT_EQ(trainer.accumulate(wrong.ids, wrong.next).status, Status::kInvalidToken);
    auto slices = trainer.accumulate_in_slices<64>(wrong.ids, wrong.next);
    while (slices.advance()) {
    }
    EXPECT_EQ(slices.result().status, Status::kInvalidToken);
    EXPECT_EQ(y(0, 0), 3);
    wrong.ids[place] = kept;
  }
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

TEST(EncoderDecoder, recomputed_and_quantized_tapes_are_smaller) {
  using Model = Matrices<>;
  using Recomputed = EncoderDecoder<
      Encoder<>,
      Sequential<Repeat<2, attune::Checkpointed<attune::DecoderLayer<decoder(false)>>>, Decoder<>::Layer<1>>>;
  using Packed = attune::QuantizedTape<Model, attune::TapePrecision::kBfloat16>;
  static_assert(sizeof(Recomputed::Tape) < sizeof(Model::Tape) && sizeof(Packed::Tape) < sizeof(Model::Tape));
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
