#include <attune/models/grow_head.hpp>

#include <attune/execution/pass.hpp>
#include <attune/layers/linear.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

template <int classes, bool bias = true>
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = classes, .bias = bias}>;

/// Outputs of a head, for features that are the same each time.
template <class Layer, class Parameters>
typename Layer::Output outputs(const Parameters& parameters) {
  typename Layer::Input x;
  attune::Rng rng(4);
  check::fill(x, rng);
  typename Layer::Output y;
  typename Layer::InferenceScratch scratch;
  attune::infer<Layer>(parameters, x, y, scratch);
  return y;
}
template <class From, class To, class Parameters>
void expect_grown(const Parameters& parameters) {
  typename To::Parameters grown;
  attune::Rng rng(9);
  grown.initialize(attune::XavierUniform{}, rng);
  attune::grow_head(parameters, grown);
  const auto before = outputs<From>(parameters);
  const auto after = outputs<To>(grown);
  for (int label = 0; label < To::Output::cols; ++label) {
    if (label < From::Output::cols) {
      EXPECT_NEAR(after(0, label), before(0, label), 1e-6f);
    } else {
      EXPECT_EQ(after(0, label), 0.0f);
    }
  }
}

}  // namespace

TEST(GrowHead, keeps_the_outputs_of_old_classes_and_begins_new_ones_at_zero) {
  Head<3>::Parameters parameters;
  attune::Rng rng(1);
  parameters.initialize(attune::XavierUniform{}, rng);
  parameters.bias(0, 1) = 0.5f;
  expect_grown<Head<3>, Head<5>>(parameters);
  Head<3, false>::Parameters without_bias;
  without_bias.initialize(attune::XavierUniform{}, rng);
  expect_grown<Head<3, false>, Head<5>>(without_bias);
  Head<3>::ParametersOf<attune::Int8Weights, attune::Tensor> quantized;
  EXPECT_EQ(attune::quantize(parameters, quantized), attune::Status::kOk);
  expect_grown<Head<3>, Head<5>>(quantized);
}

TEST(GrowHead, clears_classes_of_the_head_itself) {
  Head<5>::Parameters parameters;
  attune::Rng rng(1);
  parameters.initialize(attune::XavierUniform{}, rng);
  const auto before = outputs<Head<5>>(parameters);
  attune::grow_head(parameters, parameters, 3);
  const auto after = outputs<Head<5>>(parameters);
  for (int label = 0; label < 5; ++label) EXPECT_EQ(after(0, label), label < 3 ? before(0, label) : 0.0f);
}
