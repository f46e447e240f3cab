// FeatureBias: in models, behind a tied head, and its name in files.
#include <attune/layers/feature_bias.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "problem.hpp"

namespace {

using namespace check::in_models;
using attune::FeatureBias;
using attune::FeatureBiasShape;

struct OfBias {
  template <class Scalar>
  using Own = FeatureBias<FeatureBiasShape{.rows = kTokens, .d_model = kWidth}, Scalar>;
  static constexpr int kScalars = kWidth, kVectors = kWidth;
};
using Layer = OfBias::Own<float>;

constexpr attune::EmbeddingShape kWords{.seq_len = 4, .vocabulary = 7, .d_model = 6};
template <class Scalar>
using Body = attune::LayerNorm<attune::NormShape{4, 6}, Scalar>;
template <class Scalar>
using Head = attune::Tied<attune::Embedding<kWords, Scalar>, Body<Scalar>>;
template <class Scalar>
using WithBias = attune::Sequential<Head<Scalar>, FeatureBias<FeatureBiasShape{4, 7}, Scalar>>;

}  // namespace

ATTUNE_TEST_BRIEFLY_IN_MODELS(FeatureBias, , OfBias)
ATTUNE_TEST_IN_MODEL(FeatureBias, trains_biases_and_norms, trains_biases_and_norms, OfBias)

TEST(FeatureBias, ends_a_tied_model) {
  const attune::GradientCheck check = attune::check_gradients<WithBias<double>>();
  EXPECT_TRUE(check.ok()) << check.tensor;
  static attune::Trainer<WithBias<float>, attune::CrossEntropy<>> kept;
  kept.initialize(attune::Normal{.standard_deviation = 0.3f}, attune::Rng{1});
  const std::array<int, 4> ids{1, 5, 0, 2}, next{5, 0, 2, 6};
  const float first = kept.step(ids, next, {.learning_rate = 0.03f}).loss;
  float last = first;
  for (int i = 0; i < 30; ++i) last = kept.step(ids, next, {.learning_rate = 0.03f}).loss;
  EXPECT_LT(last, 0.5f * first);
  EXPECT_NE(kept.parameters().layer<1>().bias(0, 3), 0.0f);
}

TEST(FeatureBias, is_a_parameter_in_files) {
  check::expect_tensors<
      attune::PyTorchModule<attune::Sequential<FeatureBias<FeatureBiasShape{4, 7}>>, "cls.predictions.bias">>(
      "cls.predictions.bias[7]");
}

TEST(FeatureBias, works_in_place) { check::Problem<Layer>(6).expect_in_place(); }
