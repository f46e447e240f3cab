#include <attune/models/linear_probe.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using attune::Sequential;

using Embed = attune::Linear<attune::LinearShape{.rows = 3, .d_in = 2, .d_out = 4}>;
using Drop = attune::Dropout<attune::DropoutShape{.rows = 3, .d_model = 4, .probability = 0.5}>;
using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 3, .d_model = 4}>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
using Relu = attune::ActivationLayer<attune::Activation::kRelu, 1, 2>;
using Whole = Sequential<Embed, Drop, Mean, Head, Relu>;

Whole::Parameters whole;
Whole::ParametersOf<attune::Int8Weights, attune::Tensor> quantized;
using Tuned = attune::LinearProbe<Whole, whole>;
using TunedInt8 = attune::LinearProbe<Whole, quantized>;
static_assert(attune::count_scalars(Tuned::Parameters{}) == 4 * 2 + 2);

template <class Model>
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>>;

// Tensor by tensor: the trained part is a type of its own.
void expect_same_head(const auto& a, const auto& b) {
  EXPECT_TRUE(check::same_bits(a.weight, b.weight) && check::same_bits(a.bias, b.bias));
}
void fill() {
  attune::Rng rng(1);
  check::fill_set(whole, rng);
}

}  // namespace

TEST(LinearProbe, starts_as_the_constants_and_trains_the_last_layer_with_parameters) {
  fill();
  static Trainer<Tuned> tuned;
  tuned.initialize(attune::XavierUniform{}, attune::Rng{2});
  expect_same_head(tuned.parameters().layer<3>(), whole.layer<3>());
  static Whole::InferenceScratch scratch;
  Whole::Input x;
  Whole::Output expected, y;
  attune::Rng rng(3);
  check::fill(x, rng);
  Whole::forward(whole, x, expected, scratch);
  EXPECT_EQ(tuned.predict(x, y), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));

  // A head behind features that were computed before: dropout of constant layers is none.
  using Features = Sequential<Head, Relu>;
  static Trainer<Features> by_hand;
  static Features::Parameters head_features;
  head_features.layer<0>() = whole.layer<3>();
  by_hand.load(head_features);
  Embed::Output embedded;
  Mean::Output features;
  Embed::InferenceScratch none;
  Mean::InferenceScratch nothing;
  Embed::forward(whole.layer<0>(), x, embedded, none);
  Mean::forward({}, embedded, features, nothing);
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(tuned.step(x, 1, {.learning_rate = 0.1f}).ok());
    EXPECT_TRUE(by_hand.step(features, 1, {.learning_rate = 0.1f}).ok());
    expect_same_head(tuned.parameters().layer<3>(), by_hand.parameters().layer<0>());
  }
}

TEST(LinearProbe, has_features_that_are_the_input_of_its_head) {
  fill();
  using Features = attune::LinearProbeFeatures<Whole, whole>;
  static_assert(std::is_empty_v<Features::Parameters> && std::is_same_v<Features::Output, Mean::Output>);
  static Whole::InferenceScratch scratch;
  static Features::InferenceScratch scratch_of_features;
  Whole::Input x;
  Whole::Output expected, y;
  Mean::Output features;
  attune::Rng rng(3);
  check::fill(x, rng);
  attune::infer<Whole>(whole, x, expected, scratch);
  attune::infer<Features>(Features::Parameters{}, x, features, scratch_of_features);
  Head::InferenceScratch none;
  Head::forward(whole.layer<3>(), features, y, none);
  for (float& logit : y.values) logit = logit > 0 ? logit : 0;
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(LinearProbe, starts_as_the_numbers_of_quantized_constants) {
  fill();
  EXPECT_EQ(attune::quantize(whole, quantized), attune::Status::kOk);
  static Whole::Parameters dequantized;
  attune::copy_parameters(quantized, dequantized);
  static Trainer<TunedInt8> tuned;
  tuned.initialize(attune::XavierUniform{}, attune::Rng{2});
  expect_same_head(tuned.parameters().layer<3>(), dequantized.layer<3>());
}
