// Weights of 8 and 16 bits in every layer that has weights: the bits of plain loops in the documented
// arithmetic, forward and backward, and behind what is trained the gradients of finite differences.
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

// A form of weights in memory: the numbers as floats and, if they have one, each output's scale; its products
// are plain loops, of packed weights over integers.
template <class Scalar, int kRows, int kCols>
struct Plain {
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  Scalar numbers[std::size_t{kRows}][std::size_t{kCols}];
  Scalar scale[std::size_t{kCols}];
  bool scaled, packed;
};

// epilogue(Σ q_k·w(k)·(s·scale)) with the integers q and the scale s of value(k).
template <class Value, class Weight, class Epilogue>
float of_integers(int depth, const Value& value, const Weight& weight, float scale, const float* to, int col,
                  const Epilogue& epilogue) {
  float largest = 0;
  for (int k = 0; k < depth; ++k) largest = std::max(largest, std::fabs(value(k)));
  const float inverse = largest < 0x1p-100f ? 0 : 127 / largest;
  int sum = 0;
  for (int k = 0; k < depth; ++k) {
    const float scaled = value(k) * inverse;
    sum += static_cast<int>(std::nearbyint(scaled)) * static_cast<int>(weight(k));
  }
  const float row_scale = largest < 0x1p-100f ? 0 : largest / 127, both = row_scale * scale;
  const float product = static_cast<float>(sum) * both;
  return epilogue(product, to, col);
}

template <class X, class Scalar, int kRows, int kCols, class Y, class Epilogue = attune::kernels::Assign>
void multiply(const X& x, const Plain<Scalar, kRows, kCols>& weight, const Y& y, Epilogue epilogue = {}) {
  static_assert(kRows <= attune::kernels::kDepthBlock);
  for (int i = 0; i < X::rows; ++i) {
    for (int j = 0; j < kCols; ++j) {
      if constexpr (std::is_same_v<Scalar, float>) {
        if (weight.packed) {
          y(i, j) = of_integers(
              kRows, [&](int k) { return x(i, k); }, [&](int k) { return weight.numbers[k][j]; },
              weight.scale[j], &y(i, j), j, epilogue);
          continue;
        }
      }
      Scalar sum = 0;
      for (int k = 0; k < kRows; ++k) {
        sum = attune::kernels::multiply_add<Scalar>(x(i, k), weight.numbers[k][j], sum);
      }
      if (weight.scaled) sum = weight.scale[j] * sum;
      y(i, j) = epilogue(sum, static_cast<const Scalar*>(&y(i, j)), j);
    }
  }
}
template <class Dy, class Scalar, int kRows, int kCols, class Dx, class Epilogue = attune::kernels::Assign>
void multiply_transposed(const Dy& dy, const Plain<Scalar, kRows, kCols>& weight, const Dx& dx,
                         Epilogue epilogue = {}, int first = 0) {
  static_assert(kCols <= attune::kernels::kDepthBlock);
  for (int i = 0; i < Dy::rows; ++i) {
    for (int k = 0; k < Dx::cols; ++k) {
      const auto& numbers = weight.numbers[first + k];
      if constexpr (std::is_same_v<Scalar, float>) {
        if (weight.packed) {
          dx(i, k) = of_integers(
              kCols, [&](int j) { return dy(i, j) * weight.scale[j]; }, [&](int j) { return numbers[j]; }, 1,
              &dx(i, k), k, epilogue);
          continue;
        }
      }
      Scalar sum = 0;
      for (int j = 0; j < kCols; ++j) {
        const Scalar w = weight.scaled ? weight.scale[j] * numbers[j] : numbers[j];
        sum = attune::kernels::multiply_add<Scalar>(dy(i, j), w, sum);
      }
      dx(i, k) = epilogue(sum, static_cast<const Scalar*>(&dx(i, k)), k);
    }
  }
}
template <class Dy, class Scalar, int kRows, int kCols, class Dx>
void multiply_transposed_rows(const Dy& dy, const Plain<Scalar, kRows, kCols>& weight, int first,
                              const Dx& dx) {
  multiply_transposed(dy, weight, dx, attune::kernels::Assign{}, first);
}

}  // namespace

namespace ATTUNE_NAMESPACE {
template <class Scalar, int rows, int cols>
struct detail::TableForm<::Plain<Scalar, rows, cols>> {
  using type = Tensor<Scalar, rows, cols>;
};
}  // namespace ATTUNE_NAMESPACE

namespace {

template <class Rows, class Scalar, int rows, int cols>
void make_plain(const attune::QuantizedWeights<Rows>& narrow, Plain<Scalar, rows, cols>& plain) {
  plain.scaled = Rows::Element::kScaled;
  plain.packed = requires { narrow.stored.packed_view(); };
  for (int j = 0; j < cols; ++j) {
    if constexpr (Rows::Element::kScaled) plain.scale[j] = narrow.stored.scales[j];
    for (int i = 0; i < rows; ++i) {
      plain.numbers[i][j] = static_cast<Scalar>(attune::dequantize(narrow.stored.at(j, i)));
    }
  }
}
template <class Form, class Scalar, int rows, int cols>
void make_plain(const Form& from, Tensor<Scalar, rows, cols>& plain) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) plain(i, j) = from(i, j);
  }
}

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

template <class Layer, template <class, int, int> class Weights>
void expect_plain_bits(const typename Layer::Input& x) {
  static typename Layer::Parameters parameters;
  static typename Layer::template ParametersOf<Weights, Tensor> narrow;
  static typename Layer::template ParametersOf<Plain, Tensor> plain;
  static Pass<Layer> expected, pass;
  typename Layer::Output dy;
  attune::Rng rng(8);
  check::fill_set(parameters, rng);
  check::fill(dy, rng);
  ASSERT_EQ(attune::quantize(parameters, narrow), attune::Status::kOk);
  attune::for_each_tensor([](const auto&, auto& to, const auto& from) { make_plain(from, to); }, plain,
                          narrow);
  expected.run(plain, x, dy);
  pass.run(narrow, x, dy);
  EXPECT_TRUE(check::same_bits(pass.y, expected.y));
  EXPECT_TRUE(check::same_bits(pass.inferred, expected.inferred));
  EXPECT_TRUE(check::same_bits(pass.dx, expected.dx));
  if constexpr (!std::is_empty_v<typename Pass<Layer>::Gradients>) {
    EXPECT_TRUE(check::same_bits(pass.gradients, expected.gradients));
  }

  // The same where the set refers to it.
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
void expect_plain_bits(const typename Layer::Input& x) {
  expect_plain_bits<Layer, Int8Weights>(x);
  if constexpr (std::is_same_v<typename Layer::Scalar, float>) expect_plain_bits<Layer, PackedInt8Weights>(x);
  expect_plain_bits<Layer, Bfloat16Weights>(x);
  expect_plain_bits<Layer, Float16Weights>(x);
}
template <class Layer>
void expect_plain_bits() {
  typename Layer::Input x;
  attune::Rng rng(7);
  check::fill(x, rng);
  expect_plain_bits<Layer>(x);
}

constexpr attune::AttentionShape kAttention{.seq_len = 9,
                                            .d_model = 6,
                                            .num_heads = 2,
                                            .num_kv_heads = 1,
                                            .d_v = 4,
                                            .relative_bias = {attune::RelativePositions::kGrid, 1, 4, 3, 3},
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

TEST(QuantizedWeights, of_linear_layers_have_the_bits_of_plain_loops) {
  expect_plain_bits<attune::Linear<attune::LinearShape{5, 3, 7}>>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_plain_bits<attune::Linear<attune::LinearShape{16, 33, 18, false}>>();
  }
  expect_plain_bits<attune::Linear<attune::LinearShape{1, 64, 5}>>();
}

TEST(QuantizedWeights, of_attention_have_the_bits_of_plain_loops) {
  expect_plain_bits<attune::MultiHeadAttention<kAttention>>();
}

TEST(QuantizedWeights, of_networks_have_the_bits_of_plain_loops) {
  constexpr attune::FeedForwardShape kNetwork{.rows = 8, .d_model = 6, .d_ff = 9};
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_plain_bits<attune::FeedForward<kNetwork>>();
  }
  expect_plain_bits<attune::SwiGlu<kNetwork>>();
}

#if !ATTUNE_TEST_QUICK
TEST(QuantizedWeights, of_encoders_have_the_bits_of_plain_loops) {
  using Blocks = attune::Repeat<2, attune::EncoderLayer<kEncoder>>;
  expect_plain_bits<attune::Sequential<attune::Linear<attune::LinearShape{5, 3, 6}>,
                                       attune::LearnedPositions<attune::PositionShape{5, 6}>, Blocks>>();
}
#endif

TEST(QuantizedWeights, of_tables_are_scaled_by_row) {
  using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 4, .d_model = 5}>;
  expect_plain_bits<Layer>(Layer::Input{2, 0, 2});
  expect_plain_bits<attune::LearnedPositions<attune::PositionShape{3, 5}>>();
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
