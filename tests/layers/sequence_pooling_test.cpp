// SequencePooling: values, derivatives, padding, forms of its weights, and its name in files.
#include <attune/layers/sequence_pooling.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;
using namespace check::in_models;

constexpr SequencePoolingShape kShape{.seq_len = kTokens, .d_model = kWidth};
using Layer = SequencePooling<kShape>;
struct OfPooling {
  template <class Scalar>
  using Own = SequencePooling<kShape, Scalar>;
  static constexpr int kScalars = kWidth + 1, kVectors = 1;
};

}  // namespace

ATTUNE_TEST_BRIEFLY_IN_MODELS(SequencePooling, , OfPooling)
ATTUNE_TEST_IN_MODEL(SequencePooling, sits_in_flash, sits_in_flash, OfPooling)

TEST(SequencePooling, has_the_gradients_of_wide_rows_and_lengths) {
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

TEST(SequencePooling, is_a_linear_module_in_files) {
  check::expect_tensors<PyTorchModule<Sequential<Layer>, "attention_pool">>(
      "attention_pool.bias[1] attention_pool.weight[1,6]");
}
