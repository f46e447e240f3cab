// A sequence of n tokens through a model of up to kTokens, by SequenceLength: the bits that it has with
// padding and a mask around the edges of blocks, and the work of n tokens.
#include <attune/attention/sequence_length.hpp>

#include <attune/execution/inference_in_slices.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

using attune::Status;
using check::Behind, check::expect_same_and_zeros_behind, check::of_length;

constexpr int kTokens = 9, kWidth = 8, kClasses = 3;
using Padding = attune::KeyPaddingMask<kTokens>;
using Length = attune::SequenceLength<kTokens>;

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
    .d_ff = 12,
    .norm = attune::NormPlacement::kBefore}>;
template <class Model>
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 2>;

// An input and a target of `length` tokens; behind them what has no influence.
template <class Model>
struct Example {
  typename Model::Input x{};
  std::array<int, std::size_t{Model::Output::rows}> target{};

  Example(int length, attune::Rng& rng, Behind behind) {
    const auto one = check::sequences<kTokens>([length](int) { return length; });
    one.template fill_classes<Model::Output::rows>(target, rng, kClasses);
    one.fill(x, rng, behind, 7);
  }
};

template <class Model>
struct Pair {
  Trainer<Model> padded, trainer;

  void start() {
    padded.initialize(attune::XavierUniform{}, attune::Rng{42});
    trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  }
};

// Three steps of batches whose second sequence has `length` tokens, and a prediction.
template <class Model>
void expect_bits_of_padding(Pair<Model>& both, int length) {
  both.start();
  attune::Rng lengths(static_cast<std::uint64_t>(length));
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (const int n : {1 + static_cast<int>(lengths.next() % kTokens), length}) {
      attune::Rng one(step), other(step);
      const Example<Model> clean(n, one, Behind::kPadding), dirty(n, other, Behind::kGarbage);
      const auto expected = both.padded.accumulate(clean.x, clean.target, of_length<Padding>(n));
      const auto added = both.trainer.accumulate(dirty.x, dirty.target, of_length<Length>(n));
      EXPECT_TRUE(expected.ok() && added.ok());
      EXPECT_TRUE(check::same_bits(expected.loss, added.loss));
      EXPECT_TRUE(check::same_bits(both.padded.gradients(), both.trainer.gradients()));
    }
    EXPECT_TRUE(both.padded.update({.learning_rate = 0.01f}).ok());
    EXPECT_TRUE(both.trainer.update({.learning_rate = 0.01f}).ok());
    EXPECT_TRUE(check::same_bits(both.padded.parameters(), both.trainer.parameters()));
  }
  attune::Rng one(5), other(5);
  const Example<Model> clean(length, one, Behind::kPadding), dirty(length, other, Behind::kGarbage);
  static typename Model::Output expected, y;
  EXPECT_EQ(both.padded.predict(clean.x, expected, of_length<Padding>(length)), attune::Status::kOk);
  EXPECT_EQ(both.trainer.predict(dirty.x, y, of_length<Length>(length)), attune::Status::kOk);
  expect_same_and_zeros_behind(y, expected, length);  // of a model that pools the one row
}
}  // namespace

TEST(TrueLength, predicts_in_slices_with_another_mask_and_zeros_beyond_it) {
  using Model = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, 5, kWidth}>, Encoder,
                                   attune::Linear<attune::LinearShape{kTokens, kWidth, kClasses}>>;
  static Model::Parameters parameters;
  static Model::InferenceScratch scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  for (int length = 1; length <= kTokens; ++length) {
    const Example<Model> example(length, rng, Behind::kPadding);
    Model::Output expected, y;
    check::fill(y, rng);
    attune::infer<Model>(parameters, example.x, expected, scratch,
                         attune::CausalMask{} && of_length<Padding>(length));
    auto prediction = attune::infer_in_slices<Model, 60>(parameters, example.x, y, scratch,
                                                         attune::CausalMask{} && of_length<Length>(length));
    while (prediction.advance()) {
    }
    EXPECT_EQ(prediction.status(), Status::kOk);
    expect_same_and_zeros_behind(y, expected, length);
  }
}

namespace {

template <int seq_len, bool keep_weights>
void expect_bits_of_padding_of(std::initializer_list<int> lengths) {
  check::expect_bits_of_padding<attune::AttentionShape{
      .seq_len = seq_len, .d_model = 4, .num_heads = 2, .rotary_dim = 2, .keep_weights = keep_weights}>(
      lengths);
}

}  // namespace

TEST(TrueLength, has_the_bits_of_padding_in_rows_of_weights_longer_than_a_block) {
  expect_bits_of_padding_of<70, true>({1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 69, 70});
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_padding_of<200, false>({1, 7, 8, 9, 17, 40, 191, 192, 193, 199, 200});
  }
}

namespace {

// Counts the queries that a mask is asked for, and hides nothing.
struct Counter {
  int* queries;
  template <int kv_len, class Scalar>
  void hide(int, int, Scalar*) const {
    ++*queries;
  }
  template <int kv_len, class Scalar>
  void bias(int, int, Scalar*) const {}
};

// Does nothing to tokens but count them.
struct Counting {
  using Scalar = float;
  using Input = attune::Tensor<float, kTokens, kWidth>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  static constexpr attune::Abilities kAbilities{
      .mixes_tokens = false, .takes_context = true, .takes_length = true};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static inline int features = 0;

  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y, auto&,
                      const Call& context = {}) {
    context.template token_elements<kTokens, kWidth, 1>([&](int first, int count) {
      features += count;
      for (int i = first; i < first + count; ++i) y.data[i] = x.data[i];
    });
  }
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters& none, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch& scratch, const Call& context = {}) {
    forward(none, x, y, scratch, context);
  }
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters&, Scratch&, const auto&...) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      for (int i = 0; i < Input::size; ++i) dx.data[i] = dy.data[i];
    }
  }
};
// The same, but knows nothing of lengths.
struct Plain : Counting {
  static constexpr attune::Abilities kAbilities{.mixes_tokens = false, .takes_context = true};
};

template <class Part>
using With = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, 5, kWidth}>, Part, Encoder,
                                attune::Pooling<attune::PoolingShape{kTokens, kWidth}>,
                                attune::Linear<attune::LinearShape{1, kWidth, kClasses}>>;

}  // namespace

TEST(TrueLength, computes_no_token_beyond_it) {
  static Trainer<With<Counting>> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  for (const int length : {1, 4, 5, kTokens}) {
    attune::Rng rng(1);
    const Example<With<Counting>> example(length, rng, Behind::kGarbage);
    int queries = 0;
    Counting::features = 0;
    const auto mask = Counter{&queries} && of_length<Length>(length);
    EXPECT_TRUE(trainer.accumulate(example.x, example.target, mask).ok());
    trainer.discard();
    EXPECT_EQ(Counting::features, length * kWidth);
    EXPECT_LE(queries, 2 * (length + 3));  // of two heads, whole blocks of rows
  }
}

TEST(TrueLength, becomes_padding_in_a_model_with_a_layer_without_lengths) {
  static Pair<With<Plain>> both;
  static_assert(!attune::detail::TakesLength<With<Plain>>);
  expect_bits_of_padding(both, 4);
}
