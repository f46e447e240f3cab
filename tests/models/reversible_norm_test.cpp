// ReversibleNorm: what it computes, derivatives, padding and tapes. Plans: tests/zoo.
#include <attune/models/reversible_norm.hpp>

#include <cmath>

#include <attune/attention/mask.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/reshape.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 5, kFeatures = 3, kForecast = 4;
constexpr ReversibleNormOptions kAffine{.epsilon = 0.5, .affine = true};
constexpr ReversibleNormOptions kLast{.subtract_last = true};
constexpr ReversibleNormOptions kLastAffine{.epsilon = 0.5, .affine = true, .subtract_last = true};
template <class Scalar>
using OverTime = Sequential<Transpose<kTokens, kFeatures, Scalar>,
                            Linear<LinearShape{kFeatures, kTokens, kForecast}, Scalar>,
                            Tanh<kFeatures, kForecast, Scalar>, Transpose<kFeatures, kForecast, Scalar>>;
template <class Scalar>
using ByToken = Residual<
    Sequential<Linear<LinearShape{kTokens, kFeatures, kFeatures}, Scalar>, Tanh<kTokens, kFeatures, Scalar>>>;

/// The first rows, as they are.
template <int rows, int features>
struct FirstRows {
  using Scalar = float;
  using Input = Tensor<float, rows, features>;
  using Output = Tensor<float, rows - 1, features>;
  using Parameters = NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const auto&, ConstView<Input> x, View<Output> y, auto&) {
    for (int i = 0; i < rows - 1; ++i) {
      for (int j = 0; j < features; ++j) y(i, j) = x(i, j);
    }
  }
  static void forward(const auto& none, ConstView<Input> x, View<Output> y, auto& memory, auto&) {
    forward(none, x, y, memory);
  }
  static void backward(const auto&, ConstView<Input>, auto&, ConstView<Output> dy, auto&& dx, auto&, auto&) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < features; ++j) dx(i, j) = i < rows - 1 ? float(dy(i, j)) : 0;
    }
  }
};

}  // namespace

TEST(ReversibleNorm, gives_the_statistics_back) {
  check::Problem<ReversibleNorm<FirstRows<4, 2>>> a(1);
  a.x = {{100, -3, 101, -3, 102, -7, 103, 5}};
  a.forward();
  for (int i = 0; i < a.y.size; ++i) EXPECT_NEAR(a.y.values[i], a.x.values[i], 1e-5);
  a.infer();
  for (int i = 0; i < a.y.size; ++i) EXPECT_NEAR(a.y.values[i], a.x.values[i], 1e-5);
}

TEST(ReversibleNorm, subtracts_the_last_valid_token_and_divides_by_the_deviation) {
  using Layer = ReversibleNorm<FirstRows<4, 2>, ReversibleNormOptions{.epsilon = 0, .subtract_last = true}>;
  check::Problem<Layer> a(1);
  a.x = {{1, 8, 3, 8, 5, 6, 7, 6}};  // deviations √5 and 1
  a.forward();
  for (int i = 0; i < a.y.size; ++i) EXPECT_NEAR(a.y.values[i], a.x.values[i], 1e-5);
  const float expected[] = {-6 / 2.2360680f, 2, -4 / 2.2360680f, 2, -2 / 2.2360680f, 0};
  for (int i = 0; i < a.y.size; ++i) EXPECT_NEAR(a.tape.output.values[i], expected[i], 1e-5);
}

TEST(ReversibleNorm, does_not_see_the_level_and_the_unit_of_a_feature) {
  const auto expect = []<ReversibleNormOptions options>() {
    using Layer = ReversibleNorm<OverTime<float>, options>;
    check::Problem<Layer> a(2), b(2);
    const float unit[] = {4, 0.5, 32}, level[] = {8, -16, 0};
    for (int i = 0; i < kTokens; ++i) {
      for (int j = 0; j < kFeatures; ++j) b.x(i, j) = unit[j] * a.x(i, j) + level[j];
    }
    a.forward();
    b.forward();
    for (int i = 0; i < kForecast; ++i) {
      for (int j = 0; j < kFeatures; ++j) EXPECT_NEAR(b.y(i, j), unit[j] * a.y(i, j) + level[j], 1e-4);
    }
  };
  expect.operator()<ReversibleNormOptions{.epsilon = 0}>();
  expect.operator()<ReversibleNormOptions{.epsilon = 0, .subtract_last = true}>();
}

TEST(ReversibleNorm, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<ReversibleNorm<OverTime<double>>>(-1, 1);
  check::check_layer_gradients<ReversibleNorm<OverTime<double>, kAffine>>(-1, 1);
  check::check_layer_gradients<ReversibleNorm<OverTime<double>, kLast>>(-1, 1);
  check::check_layer_gradients<ReversibleNorm<OverTime<double>, kLastAffine>>(-1, 1);
  SequenceLength<kTokens> length;
  (void)length.set_length(3);
  check::check_layer_gradients<ReversibleNorm<ByToken<double>>>(-1, 1, length);
  check::check_layer_gradients<ReversibleNorm<ByToken<double>, kAffine>>(-1, 1, length);
  check::check_layer_gradients<ReversibleNorm<ByToken<double>, kLastAffine>>(-1, 1, length);
}

TEST(ReversibleNorm, leaves_padding_out) {
  const auto expect = []<ReversibleNormOptions options>() {
    using Layer = ReversibleNorm<ByToken<float>, options>;
    check::Problem<Layer> clean(4), dirty(4);
    for (int j = 0; j < kFeatures; ++j) {
      dirty.x(1, j) = dirty.x(4, j) = check::kNan<float>;
      clean.dy(1, j) = dirty.dy(1, j) = clean.dy(4, j) = dirty.dy(4, j) = 0;
    }
    KeyPaddingMask<kTokens> padding;
    padding.set_valid({true, false, true, true, false});
    for (auto* a : {&clean, &dirty}) {
      a->forward(padding);
      a->backward(padding);
    }
    for (const int i : {0, 2, 3}) {
      for (int j = 0; j < kFeatures; ++j) {
        EXPECT_TRUE(check::same_bits(clean.y(i, j), dirty.y(i, j)));
        EXPECT_TRUE(check::same_bits(clean.dx(i, j), dirty.dx(i, j)));
      }
    }
    EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
  };
  expect.operator()<kAffine>();
  expect.operator()<kLastAffine>();
}

TEST(ReversibleNorm, reads_nothing_of_a_sequence_without_a_valid_token) {
  using Model = ReversibleNorm<Sequential<Pooling<PoolingShape{.seq_len = kTokens, .d_model = kFeatures}>,
                                          Linear<LinearShape{1, kFeatures, kFeatures}>>,
                               kLast>;
  Rng rng(5);
  Model::Parameters parameters, gradients{};
  check::fill_set(parameters, rng);
  KeyPaddingMask<kTokens> mask;
  mask.set_valid({false, false, false, false, false});
  Model::Input x, dx;
  for (float& value : x.values) value = check::kNan<float>;
  for (float& value : dx.values) value = check::kNan<float>;
  Model::Output y, inferred, dy;
  check::fill(dy, rng);
  Model::Tape tape;
  Model::Scratch scratch;
  Model::InferenceScratch inference;
  attune::forward<Model>(parameters, x, y, tape, scratch, mask);
  attune::infer<Model>(parameters, x, inferred, inference, mask);
  EXPECT_TRUE(check::same_bits(y, inferred));
  for (const float value : y.values) EXPECT_TRUE(std::isfinite(value));
  attune::backward<Model>(parameters, x, tape, dy, dx, gradients, scratch, mask);
  for (const float value : dx.values) EXPECT_EQ(value, 0);
}

TEST(ReversibleNorm, packs_the_tape_of_its_model) {
  using Packed = QuantizedTape<ReversibleNorm<OverTime<float>>>;
  static_assert(std::is_same_v<Packed, ReversibleNorm<QuantizedTape<OverTime<float>>>>);
}
