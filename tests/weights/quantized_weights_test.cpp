// Weights of 8 and 16 bits in every layer that has weights, forward and backward, and behind what is trained
// the gradients of finite differences. The bits of products: tests/kernels, of models: tests/zoo.
#include <attune/weights/quantized_weights.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Bfloat16Weights, attune::Float16Weights, attune::Int8Weights, attune::PackedInt8Weights,
    attune::Tensor;
using attune::Untrained;

// Everything that a layer computes of a set, with biases and norms trained.
template <class Layer>
struct Pass {
  using Gradients = typename Layer::template ParametersOf<Untrained, Tensor>;
  static constexpr bool kTakesIds = attune::detail::TakesIds<Layer>;
  typename Layer::Output y, inferred;
  std::conditional_t<kTakesIds, int, typename Layer::Input> dx{};
  Gradients gradients;

  template <class Set>
  void run(const Set& parameters, const typename Layer::Input& x, const typename Layer::Output& dy) {
    static attune::detail::TapeOf<Layer, Gradients> tape;
    static attune::detail::ScratchOf<Layer, Gradients> scratch;
    static typename Layer::InferenceScratch inference;
    attune::set_zero(gradients);
    (void)Layer::forward(parameters, x, inferred, inference);
    (void)Layer::forward(parameters, x, y, tape, scratch);
    if constexpr (!kTakesIds) Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  }
};

// Equal but for roundings, of integers those of every row. What is compared may be empty.
template <class Set>
void expect_near(const Set& set, const Set& expected, double tolerance) {
  attune::for_each_tensor(
      [tolerance](const attune::TensorPath& path, const auto& one, const auto& other) {
        SCOPED_TRACE(path.name);
        double largest = 0;
        for (const float value : other.values) largest = std::max(largest, std::fabs(double(value)));
        EXPECT_LE(check::max_difference(one, other), tolerance * largest);
      },
      set, expected);
}
template <int rows, int cols>
void expect_near(const Tensor<float, rows, cols>& y, const Tensor<float, rows, cols>& expected,
                 double tolerance) {
  using Set = attune::LinearParameters<float, rows, cols, false>;
  expect_near(Set{y}, Set{expected}, tolerance);
}

// A layer computes with quantized weights what it does with the floats that they stand for.
template <class Layer, template <class, int, int> class Weights>
void expect_values_of_floats(const typename Layer::Input& x) {
  static typename Layer::Parameters parameters, floats;
  static typename Layer::template ParametersOf<Weights, Tensor> narrow;
  static Pass<Layer> expected, pass;
  typename Layer::Output dy;
  attune::Rng rng(8);
  check::fill_set(parameters, rng);
  check::fill(dy, rng);
  ASSERT_EQ(attune::quantize(parameters, narrow), attune::Status::kOk);
  attune::copy_parameters(narrow, floats);
  expected.run(floats, x, dy);
  pass.run(narrow, x, dy);
  constexpr bool kPacked = std::is_same_v<Weights<float, 1, 1>, PackedInt8Weights<float, 1, 1>>;
  constexpr double kTolerance = kPacked ? 0.03 : 1e-5;
  EXPECT_TRUE(check::same_bits(pass.y, pass.inferred));
  expect_near(pass.y, expected.y, kTolerance);
  if constexpr (!Pass<Layer>::kTakesIds) expect_near(pass.dx, expected.dx, kTolerance);
  expect_near(pass.gradients, expected.gradients, kTolerance);
  expected = pass;

  // The same bits where the set refers to it.
  const auto referred = [&]<template <class, int, int> class Form>() {
    typename Layer::template ParametersOf<Form, attune::Reference> references;
    attune::for_each_tensor([](const auto&, auto& to, const auto& from) { to = attune::reference_to(from); },
                            references, narrow);
    pass.run(references, x, dy);
    EXPECT_TRUE(check::same_bits(pass.y, expected.y));
    EXPECT_TRUE(check::same_bits(pass.dx, expected.dx));
  };
  if constexpr (std::is_same_v<Weights<float, 1, 1>, Int8Weights<float, 1, 1>>) {
    referred.template operator()<attune::Int8Reference>();
  } else if constexpr (std::is_same_v<Weights<float, 1, 1>, PackedInt8Weights<float, 1, 1>>) {
    referred.template operator()<attune::PackedInt8Reference>();
  } else if constexpr (std::is_same_v<Weights<float, 1, 1>, Bfloat16Weights<float, 1, 1>>) {
    referred.template operator()<attune::Bfloat16Reference>();
  } else {
    referred.template operator()<attune::Float16Reference>();
  }
}
template <class Layer>
void expect_values_of_floats(const typename Layer::Input& x) {
  expect_values_of_floats<Layer, Int8Weights>(x);
  expect_values_of_floats<Layer, PackedInt8Weights>(x);
  expect_values_of_floats<Layer, Bfloat16Weights>(x);
  expect_values_of_floats<Layer, Float16Weights>(x);
}
template <class Layer>
void expect_values_of_floats() {
  typename Layer::Input x;
  attune::Rng rng(7);
  check::fill(x, rng);
  expect_values_of_floats<Layer>(x);
}

constexpr attune::AttentionShape kAttention{.seq_len = 9,
                                            .d_model = 6,
                                            .num_heads = 2,
                                            .num_kv_heads = 1,
                                            .d_v = 4,
                                            .softcap = 3,
                                            .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare,
                                            .score_scale = attune::ScoreScale::kFactor,
                                            .add_bias_kv = true};
constexpr attune::EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 6, .num_heads = 3},
                                             .d_ff = 7};

static_assert(sizeof(Int8Weights<float, 30, 20>) == 30 * 20 + 20 * sizeof(float));
static_assert(sizeof(Float16Weights<float, 30, 20>) == 2 * 30 * 20);
static_assert(std::is_trivially_copyable_v<Int8Weights<float, 3, 4>>);

}  // namespace

TEST(QuantizedWeights, of_linear_layers_compute_with_the_floats_they_stand_for) {
  expect_values_of_floats<attune::Linear<attune::LinearShape{5, 3, 7}>>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_values_of_floats<attune::Linear<attune::LinearShape{16, 33, 18, false}>>();
  }
  expect_values_of_floats<attune::Linear<attune::LinearShape{1, 64, 5}>>();
}

TEST(QuantizedWeights, of_attention_compute_with_the_floats_they_stand_for) {
  expect_values_of_floats<attune::MultiHeadAttention<kAttention>>();
}

TEST(QuantizedWeights, of_networks_compute_with_the_floats_they_stand_for) {
  constexpr attune::FeedForwardShape kNetwork{.rows = 8, .d_model = 6, .d_ff = 9};
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_values_of_floats<attune::FeedForward<kNetwork>>();
  }
  expect_values_of_floats<attune::SwiGlu<kNetwork>>();
}

#if !ATTUNE_TEST_QUICK
TEST(QuantizedWeights, of_encoders_compute_with_the_floats_they_stand_for) {
  using Blocks = attune::Repeat<2, attune::EncoderLayer<kEncoder>>;
  expect_values_of_floats<
      attune::Sequential<attune::Linear<attune::LinearShape{5, 3, 6}>,
                         attune::LearnedPositions<attune::PositionShape{5, 6}>, Blocks>>();
}
#endif

TEST(QuantizedWeights, of_tables_are_scaled_by_row) {
  using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 4, .d_model = 5}>;
  expect_values_of_floats<Layer>(Layer::Input{2, 0, 2});
  expect_values_of_floats<attune::LearnedPositions<attune::PositionShape{3, 5}>>();
  Layer::Parameters parameters{};
  for (int j = 0; j < 5; ++j) parameters.weight(0, j) = 100, parameters.weight(1, j) = 0.01f;
  Layer::ParametersOf<Int8Weights, Tensor> narrow;
  ASSERT_EQ(attune::quantize(parameters, narrow), attune::Status::kOk);
  EXPECT_NEAR(narrow.weight(0, 3), 100, 1e-4);
  EXPECT_NEAR(narrow.weight(1, 3), 0.01, 1e-8);
  EXPECT_EQ(narrow.weight(2, 3), 0.0f);
}

namespace {

// Gradients of what is trained in front of, and within, quantized constants.
template <class Model>
void check_model_gradients() {
  static typename Model::Parameters parameters, gradients;
  static typename Model::Tape tape;
  static typename Model::Scratch scratch;
  typename Model::Input x, dx;
  typename Model::Output y, dy;
  attune::Rng rng(11);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  attune::set_zero(gradients);
  Model::forward(parameters, x, y, tape, scratch);
  Model::backward(parameters, x, tape, dy, dx, gradients, scratch);
  const auto loss = [&] {
    Model::forward(parameters, x, y, tape, scratch);
    return check::dot(y, dy);
  };
  EXPECT_GT(check::expect_set_gradients(loss, parameters, gradients), 1e-3);
  check::expect_gradient({"x"}, loss, x, dx);
}

template <class Model>
void expect_model_gradients() {
  if constexpr (check::kDepth >= check::kBoard) {
    check_model_gradients<Model>();
  } else {
    check::leave_case();
  }
}

using In = attune::Linear<attune::LinearShape{5, 3, 6}, double>;
using Encoder = attune::EncoderLayer<kEncoder, double>;
Encoder::ParametersOf<Int8Weights, Tensor> integers;
Encoder::ParametersOf<Bfloat16Weights, Tensor> halves;

void make_constants() {
  static Encoder::Parameters parameters;
  attune::Rng rng(12);
  check::fill_set(parameters, rng);
  ASSERT_EQ(attune::quantize(parameters, integers), attune::Status::kOk);
  ASSERT_EQ(attune::quantize(parameters, halves), attune::Status::kOk);
}

}  // namespace

TEST(QuantizedWeights, are_constants_after_trained_layers) {
  make_constants();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_model_gradients<attune::Sequential<In, attune::Frozen<Encoder, integers>>>();
  }
  expect_model_gradients<attune::Sequential<In, attune::Frozen<Encoder, halves>>>();
}

TEST(QuantizedWeights, are_constants_next_to_trained_biases_and_norms) {
  make_constants();
  using Tuned = attune::BiasesAndNorms<Encoder, integers>;
  static_assert(sizeof(Tuned::Parameters) == sizeof(double) * 55);
  expect_model_gradients<attune::Sequential<In, Tuned>>();
}
