// SequencePooling: values, derivatives, padding, forms of its weights, and its name in files.
#include <attune/layers/sequence_pooling.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr SequencePoolingShape kShape{.seq_len = 5, .d_model = 6};
using Layer = SequencePooling<kShape>;
using Model = Sequential<Linear<LinearShape{5, 3, 6}>, Layer, Linear<LinearShape{1, 6, 2}>>;

constexpr Model::Parameters kConstants = [] {
  Model::Parameters constants{};
  int i = 0;
  for_each_tensor(
      [&i](const TensorPath&, auto& tensor) {
        for (float& value : tensor.values) value = static_cast<float>(i++ * 37 % 19 - 9) / 17;
      },
      constants);
  return constants;
}();

template <class Set>
Model::Output infer(const Set& set) {
  Model::Input x;
  Rng rng(3);
  check::fill(x, rng);
  Model::InferenceScratch scratch;
  Model::Output y;
  Model::forward(set, x, y, scratch);
  return y;
}
template <template <class, int, int> class Weights>
void expect_near() {
  static Model::ParametersOf<Weights, Tensor> quantized;
  EXPECT_EQ(quantize(kConstants, quantized), Status::kOk);
  const auto expected = infer(kConstants), y = infer(quantized);
  EXPECT_FALSE(check::same_bits(expected, y));
  for (int i = 0; i < expected.size; ++i) EXPECT_NEAR(y.values[i], expected.values[i], 0.02f);
}

}  // namespace

TEST(SequencePooling, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<SequencePooling<kShape, double>>(-1, 1);
  check::check_layer_gradients<SequencePooling<SequencePoolingShape{7, 19, false}, double>>(-1, 1);
  SequenceLength<5> length;
  (void)length.set_length(3);
  check::check_layer_gradients<SequencePooling<kShape, double>>(-1, 1, length);
}

TEST(SequencePooling, leaves_padding_out) {
  check::Problem<Layer> clean(4), dirty(4);
  for (int j = 0; j < 6; ++j) {
    clean.x(1, j) = clean.x(4, j) = 1;
    dirty.x(1, j) = dirty.x(4, j) = check::kNan<float>;
  }
  KeyPaddingMask<5> padding;
  padding.set_valid({true, false, true, true, false});
  for (auto* a : {&clean, &dirty}) {
    a->infer(padding);
    const auto inferred = a->y;
    a->forward(padding);
    EXPECT_TRUE(check::same_bits(a->y, inferred));
    a->backward(padding);
  }
  EXPECT_TRUE(check::same_bits(clean.y, dirty.y));
  EXPECT_TRUE(check::same_bits(clean.dx, dirty.dx));
  EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
  padding.set_valid({false, false, false, false, false});
  dirty.infer(padding);
  EXPECT_TRUE(check::same_bits(dirty.y, Layer::Output{}));
}

TEST(SequencePooling, of_a_length_is_that_of_the_sequence) {
  check::Problem<Layer> a(4);
  SequenceLength<5> length;
  (void)length.set_length(3);
  a.infer(length);
  SequencePooling<SequencePoolingShape{3, 6}>::InferenceScratch scratch;
  Layer::Output y;
  SequencePooling<SequencePoolingShape{3, 6}>::forward(a.parameters, view(a.x).rows_at<3>(0), y, scratch);
  for (int j = 0; j < 6; ++j) EXPECT_NEAR(a.y(0, j), y(0, j), 1e-6);
}

TEST(SequencePooling, sits_in_flash_and_has_weights_of_8_and_16_bits) {
  constexpr auto elsewhere = references_to<Model>(kConstants);
  EXPECT_TRUE(check::same_bits(infer(elsewhere), infer(kConstants)));
  expect_near<Int8Weights>();
  expect_near<PackedInt8Weights>();
  expect_near<Bfloat16Weights>();
}

TEST(SequencePooling, is_a_linear_module_in_files) {
  check::expect_tensors<PyTorchModule<Sequential<Layer>, "attention_pool">>(
      "attention_pool.bias[1] attention_pool.weight[1,6]");
}
