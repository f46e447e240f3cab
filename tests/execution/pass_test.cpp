// Layers that a user calls with SequenceLength and nothing else. In a trainer: models/true_length_test.cpp.
#include <attune/execution/pass.hpp>

#include <cstring>

#include <attune/attention/sequence_length.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>

#include "check.hpp"
#include "lengths.hpp"
#include "own_layer.hpp"

namespace {

using attune::Status;
using check::expect_same_and_zeros_behind, check::fill_behind, check::of_length;

constexpr int kTokens = 5, kWidth = 4;

void fill(std::array<int, kTokens>& ids, attune::Rng& rng) {
  for (int& id : ids) id = static_cast<int>(rng.next() % 7);
}
void fill(auto& matrix, attune::Rng& rng) { check::fill(matrix, rng); }

template <class Layer>
struct Pass {
  typename Layer::Parameters gradients;
  typename Layer::Input x;
  typename Layer::Output inferred, y, dy, dx;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  void run(const auto& parameters, const auto& mask) {
    gradients = {};
    std::memset(static_cast<void*>(&tape), 0xFF, sizeof tape);  // NaN
    (void)attune::infer<Layer>(parameters, x, inferred, inference, mask);
    (void)attune::forward<Layer>(parameters, x, y, tape, scratch, mask);
    if constexpr (attune::detail::TakesIds<Layer>) {
      attune::backward<Layer>(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch, mask);
    } else {
      attune::backward<Layer>(parameters, x, tape, dy, dx, gradients, scratch, mask);
    }
  }
};

template <class Layer>
void expect_bits_of_padding() {
  static Pass<Layer> padded, own;
  static typename Layer::Parameters parameters;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  for (int length = 1; length <= kTokens; ++length) {
    fill(padded.x, rng), check::fill(padded.dy, rng);
    own.x = padded.x, own.dy = padded.dy;
    fill_behind(padded.dy, length, 0.0f);
    fill_behind(own.x, length, check::kNan<float>), fill_behind(own.dy, length, check::kNan<float>);
    padded.run(parameters, attune::CausalMask{} && of_length<attune::KeyPaddingMask<kTokens>>(length));
    own.run(parameters, attune::CausalMask{} && of_length<attune::SequenceLength<kTokens>>(length));
    EXPECT_TRUE(check::same_bits(own.gradients, padded.gradients));
    expect_same_and_zeros_behind(own.inferred, padded.inferred, length);
    expect_same_and_zeros_behind(own.y, padded.y, length);
    if constexpr (!attune::detail::TakesIds<Layer>) expect_same_and_zeros_behind(own.dx, padded.dx, length);
  }
}

using Attention = attune::MultiHeadAttention<attune::AttentionShape{kTokens, kWidth, 2}>;
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{{kTokens, kWidth, 2}, 6}>;

// Takes a mask, but no length: x_0 is added to every token.
struct AddsFirst : OwnLayer<kTokens, kWidth> {
  static constexpr attune::Abilities kAbilities{.mask = attune::MaskUse::kPadding, .takes_context = true};
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch&, const auto&...) {
    for (int i = kTokens - 1; i >= 0; --i) {
      for (int j = 0; j < kWidth; ++j) y(i, j) = x(i, j) + x(0, j);
    }
  }
  static void forward(const Parameters& none, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch&, const auto&...) {
    InferenceScratch scratch;
    forward(none, x, y, scratch);
  }
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters&, Scratch&, const auto&...) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      for (int i = kTokens - 1; i >= 0; --i) {
        for (int j = 0; j < kWidth; ++j) {
          dx(i, j) = dy(i, j);
          if (i > 0) continue;
          for (int row = 0; row < kTokens; ++row) dx(0, j) += dy(row, j);
        }
      }
    }
  }
};

}  // namespace

TEST(TrueLength, is_begun_by_the_layer_that_is_called) {
  expect_bits_of_padding<Attention>();
  expect_bits_of_padding<Encoder>();
  expect_bits_of_padding<attune::Repeat<2, attune::Sequential<Encoder>>>();
  expect_bits_of_padding<
      attune::Tied<attune::Embedding<attune::EmbeddingShape{kTokens, 7, kWidth}>, Attention>>();
}

TEST(TrueLength, becomes_padding_if_one_layer_takes_no_length) {
  using Model = attune::Sequential<Encoder, AddsFirst>;
  static_assert(!attune::detail::TakesLength<Model>);
  static Model::Parameters parameters;
  static Model::InferenceScratch scratch;
  Model::Input x;
  Model::Output y, expected;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  attune::infer<Model>(parameters, x, expected, scratch, of_length<attune::KeyPaddingMask<kTokens>>(3));
  attune::infer<Model>(parameters, x, y, scratch, of_length<attune::SequenceLength<kTokens>>(3));
  EXPECT_TRUE(check::same_bits(y, expected));
}
