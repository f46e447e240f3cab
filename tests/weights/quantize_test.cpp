// Parameters in fewer bits: which numbers, what cannot be, and how large the errors are.
#include <attune/weights/quantize.hpp>

#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using attune::Bfloat16Weights, attune::Float16Weights, attune::Int8Weights, attune::Tensor;
using Layer = attune::Linear<attune::LinearShape{2, 3, 2}>;
using Network = attune::FeedForward<attune::FeedForwardShape{.rows = 2, .d_model = 5, .d_ff = 7}>;

constexpr Layer::Parameters kParameters{{{1, -0.5f, 2, 0.25f, -4, 0}}, {{7, 8}}};

template <template <class, int, int> class Weights>
consteval auto quantized() {
  Layer::ParametersOf<Weights, Tensor> set{};
  static_cast<void>(attune::quantize(kParameters, set));
  return set;
}

template <template <class, int, int> class Weights>
void expect_refused(float weight) {
  static Layer::ParametersOf<Weights, Tensor> set, before;
  Layer::Parameters parameters = kParameters;
  ASSERT_EQ(attune::quantize(parameters, set), attune::Status::kOk);
  before = set;
  parameters.bias(0, 0) = 100;
  parameters.weight(0, 1) = 0.75f;
  parameters.weight(2, 1) = weight;
  EXPECT_EQ(attune::quantize(parameters, set), attune::Status::kNotFinite);
  EXPECT_TRUE(check::same_bits(set, before));
}

}  // namespace

TEST(Quantize, scales_each_output_by_its_largest_weight) {
  constexpr auto kInt8 = quantized<Int8Weights>();
  EXPECT_EQ(kInt8.weight.stored.scales[0], 4.0f / 127);
  EXPECT_EQ(kInt8.weight.stored.scales[1], 0.5f / 127);
  const int expected[] = {32, 64, -127, -127, 64, 0};  // 31.75, 63.5, −127; −127, 63.5, 0
  for (int i = 0; i < 6; ++i) EXPECT_EQ(kInt8.weight.stored.elements[i].value, expected[i]) << i;
  EXPECT_EQ(kInt8.bias(0, 1), 8.0f);
}

TEST(Quantize, at_compile_time_as_at_run_time) {
  constexpr auto kInt8 = quantized<Int8Weights>();
  constexpr auto kBfloat16 = quantized<Bfloat16Weights>();
  constexpr auto kFloat16 = quantized<Float16Weights>();
  static Layer::Parameters parameters;
  parameters = kParameters;
  const auto expect_same = [&](const auto& constant) {
    std::remove_cvref_t<decltype(constant)> set{};
    ASSERT_EQ(attune::quantize(parameters, set), attune::Status::kOk);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 2; ++j) EXPECT_EQ(set.weight(i, j), constant.weight(i, j));
    }
  };
  expect_same(kInt8);
  expect_same(kBfloat16);
  expect_same(kFloat16);
}

TEST(Quantize, weights_without_a_number_are_refused_and_nothing_is_changed) {
  for (const float weight : {check::kInfinity<float>, -check::kInfinity<float>, check::kNan<float>}) {
    expect_refused<Int8Weights>(weight);
    expect_refused<Bfloat16Weights>(weight);
    expect_refused<Float16Weights>(weight);
  }
  expect_refused<Float16Weights>(70000.0f);
  expect_refused<Bfloat16Weights>(3.40282347e38f);
}

TEST(Quantize, outputs_of_zeros_stay_zeros) {
  Layer::Parameters parameters = kParameters;
  for (int i = 0; i < 3; ++i) parameters.weight(i, 1) = 0;
  Layer::ParametersOf<Int8Weights, Tensor> set;
  ASSERT_EQ(attune::quantize(parameters, set), attune::Status::kOk);
  const Layer::Input x{{1, 2, 3, 4, 5, 6}};
  Layer::Output y;
  Layer::forward(set, x, y);
  EXPECT_EQ(y(0, 1), 8.0f);
  EXPECT_EQ(y(1, 1), 8.0f);
}

TEST(Quantize, errors_are_reported_per_tensor) {
  static Network::Parameters parameters;
  attune::Rng rng(3);
  check::fill_set(parameters, rng);
  const auto expect_errors = [&](auto& set, double most) {
    ASSERT_EQ(attune::quantize(parameters, set), attune::Status::kOk);
    int tensors = 0;
    attune::for_each_quantization_error(
        [&](const attune::TensorPath& path, attune::QuantizationError error) {
          ++tensors;
          EXPECT_EQ(path.name[0], 'w');
          EXPECT_LE(error.largest, most);
          EXPECT_GT(error.largest, most / 4);
          EXPECT_LT(error.rms, error.largest * 2);
          EXPECT_GT(error.rms, 0.0);
        },
        parameters, set);
    EXPECT_EQ(tensors, 2);
  };
  static Network::ParametersOf<Int8Weights, Tensor> integers;
  static Network::ParametersOf<Bfloat16Weights, Tensor> bfloats;
  static Network::ParametersOf<Float16Weights, Tensor> halves;
  expect_errors(integers, 0.5 / 127);
  expect_errors(bfloats, 0.5 / 128);
  expect_errors(halves, 0.5 / 1024);
}

TEST(Quantize, exact_values_have_no_error) {
  Layer::ParametersOf<Float16Weights, Tensor> set;
  ASSERT_EQ(attune::quantize(kParameters, set), attune::Status::kOk);
  attune::for_each_quantization_error(
      [](const attune::TensorPath&, attune::QuantizationError error) {
        EXPECT_EQ(error.largest, 0.0);
        EXPECT_EQ(error.rms, 0.0);
      },
      kParameters, set);
}
