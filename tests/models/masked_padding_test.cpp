// What a mask hides has no influence, whatever it holds: NaN, infinity, numbers that overflow. Gradients and
// what is not hidden have the same bits as with other contents. Models: tests/zoo.
#include <attune/attention/mask.hpp>
#include <attune/models/decoder_layer.hpp>

#include "check.hpp"

namespace {

constexpr int kTokens = 6, kWidth = 4;
constexpr float kGarbage[] = {std::numeric_limits<float>::quiet_NaN(), check::kInfinity<float>,
                              -check::kInfinity<float>, 3e38f};

using Hidden = bool[kTokens];
constexpr Hidden kPadding{false, false, true, false, false, true},
    kLater{false, false, false, false, true, true};

attune::KeyPaddingMask<kTokens> padding() {
  attune::KeyPaddingMask<kTokens> mask;
  mask.set_valid({true, true, false, true, true, false});
  return mask;
}

// Rows of hidden tokens.
template <class Matrix>
void fill_hidden(Matrix& matrix, const Hidden& hidden, float value) {
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < Matrix::cols && hidden[i]; ++j) matrix(i, j) = value;
  }
}
template <class Matrix>
bool same_where_shown(const Matrix& a, const Matrix& b, const Hidden& hidden) {
  bool same = true;
  for (int i = 0; i < Matrix::rows; ++i) {
    for (int j = 0; j < Matrix::cols; ++j)
      same &= (Matrix::rows == kTokens && hidden[i]) || a(i, j) == b(i, j);
  }
  return same;
}

template <class Layer>
struct Pass {
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;
  typename Layer::Parameters gradients;
  typename Layer::Input dx;
  typename Layer::Output y, inferred;

  template <class Mask>
  void operator()(const typename Layer::Parameters& parameters, const typename Layer::Input& x,
                  const typename Layer::Output& dy, const Mask& mask) {
    tape = {};
    attune::set_zero(gradients);
    attune::infer<Layer>(parameters, x, inferred, inference, mask);
    attune::forward<Layer>(parameters, x, y, tape, scratch, mask);
    attune::backward<Layer>(parameters, x, tape, dy, dx, gradients, scratch, mask);
  }
};

template <class Layer, class Mask>
void expect_no_influence(const Mask& mask, const Hidden& hidden) {
  static typename Layer::Parameters parameters;
  static typename Layer::Input x;
  static typename Layer::Output dy;
  static Pass<Layer> clean, dirty;
  attune::Rng rng(3);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  if constexpr (Layer::Output::rows == kTokens) fill_hidden(dy, hidden, 0);
  clean(parameters, x, dy, mask);
  for (const float garbage : kGarbage) {
    fill_hidden(x, hidden, garbage);
    dirty(parameters, x, dy, mask);
    EXPECT_TRUE(same_where_shown(clean.y, dirty.y, hidden));
    EXPECT_TRUE(same_where_shown(clean.inferred, dirty.inferred, hidden));
    EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
    bool same = true;
    for (int i = 0; i < x.size; ++i) same &= clean.dx.values[i] == dirty.dx.values[i];
    EXPECT_TRUE(same);
  }
}

using Attention = attune::MultiHeadAttention<attune::AttentionShape{kTokens, kWidth, 2}>;
}  // namespace

TEST(MaskedPadding, has_no_influence_on_attention) {
  expect_no_influence<Attention>(padding(), kPadding);
  expect_no_influence<Attention>(attune::CausalMask{}, kLater);
  expect_no_influence<Attention>(attune::CausalMask{} && padding(), kPadding);
}

TEST(MaskedPadding, has_no_influence_next_to_a_nan_bias) {
  static attune::Tensor<float, kTokens, kTokens> bias, with_nan;
  attune::Rng rng(5);
  check::fill(bias, rng);
  with_nan = bias;
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kTokens; ++j) {
      if (kPadding[i] || kPadding[j]) with_nan(i, j) = kGarbage[0];
    }
  }
  static Attention::Parameters parameters;
  static Attention::Input x;
  static Attention::Output dy;
  static Pass<Attention> clean, dirty;
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  fill_hidden(dy, kPadding, 0);
  clean(parameters, x, dy, padding() && attune::AdditiveMask(bias));
  dirty(parameters, x, dy, padding() && attune::AdditiveMask(with_nan));
  EXPECT_TRUE(same_where_shown(clean.y, dirty.y, kPadding));
  EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
}

TEST(MaskedPadding, of_memory_and_tokens_has_no_influence_on_a_decoder_layer) {
  using Layer = attune::DecoderLayer<attune::DecoderLayerShape{{kTokens, kWidth, 2}, 5, kTokens}>;
  static Layer::Parameters parameters, gradients[2];
  static Layer::Input x, dx;
  static Layer::Memory memory, d_memory[2];
  static Layer::Output y[2], dy;
  static Layer::Tape tape;
  static Layer::Scratch scratch;
  attune::Rng rng(4);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(memory, rng);
  check::fill(dy, rng);
  fill_hidden(dy, kLater, 0);
  const auto run = [&](int i, const auto& memory_mask) {
    attune::set_zero(gradients[i]);
    attune::forward<Layer>(parameters, x, memory, y[i], tape, scratch, attune::CausalMask{}, memory_mask);
    attune::backward<Layer>(parameters, x, memory, tape, dy, dx, d_memory[i], gradients[i], scratch,
                            attune::CausalMask{}, memory_mask);
  };
  const auto expect_same = [&] {
    EXPECT_TRUE(same_where_shown(y[0], y[1], kLater));
    EXPECT_TRUE(check::same_bits(gradients[0], gradients[1]));
    bool same = true;
    for (int i = 0; i < memory.size; ++i) same &= d_memory[0].values[i] == d_memory[1].values[i];
    EXPECT_TRUE(same);
  };
  run(0, padding());
  fill_hidden(x, kLater, kGarbage[0]);
  fill_hidden(memory, kPadding, kGarbage[0]);
  run(1, padding());
  expect_same();
  fill_hidden(memory, kPadding, 0.5f);  // later tokens alone, before a memory that hides nothing
  run(1, attune::NoMask{});
  fill_hidden(x, kLater, 0.25f);
  run(0, attune::NoMask{});
  expect_same();
}

TEST(MaskedPadding, nan_stays_nan_without_a_mask) {
  static Attention::Parameters parameters;
  static Attention::Input x;
  static Attention::Output dy;
  static Pass<Attention> run;
  attune::Rng rng(3);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  x(2, 1) = kGarbage[0];
  run(parameters, x, dy, attune::NoMask{});
  for (const float value : run.y.values) EXPECT_TRUE(value != value);
}
