// What predictions answer where numbers are not finite: of the input, or on the way to the output.
#include <attune/execution/stream.hpp>
#include <attune/training/forward_only.hpp>
#include <attune/training/trainer.hpp>

#include <limits>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using attune::Status;
using check::kInfinity;
using check::kNan;

constexpr int kTokens = 4, kWidth = 4;
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}>;
template <class Norm>
using Normalized = attune::Sequential<Norm, attune::Linear<attune::LinearShape{kTokens, kWidth, 2}>>;
constexpr attune::NormShape kNorm{.rows = kTokens, .d_model = kWidth};

template <class Model>
struct Prediction {
  attune::Trainer<Model> trainer;
  typename Model::Input x;
  typename Model::Output y;

  Prediction() : trainer{} {
    attune::Rng rng(1);
    check::fill(x, rng);
    trainer.initialize(attune::XavierUniform{}, rng);
  }
  template <class Mask = attune::NoMask>
  [[nodiscard]] Status of(float first, const Mask& mask = {}) {
    x(kTokens - 1, 0) = first;
    return trainer.predict(x, y, mask);
  }
};

template <class Model>
void expect_status_of_numbers() {
  Prediction<Model> prediction;
  EXPECT_EQ(prediction.of(1), Status::kOk);
  for (const float number : {kInfinity<float>, -kInfinity<float>, kNan<float>})
    EXPECT_EQ(prediction.of(number), Status::kNotFinite);
  EXPECT_EQ(prediction.of(1), Status::kOk);  // nothing of it stays
}

}  // namespace

TEST(Predictions, of_numbers_that_are_not_finite_are_refused) {
  expect_status_of_numbers<Attention>();
  expect_status_of_numbers<Normalized<attune::LayerNorm<kNorm>>>();
  expect_status_of_numbers<Normalized<attune::RmsNorm<kNorm>>>();
  expect_status_of_numbers<attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kWidth, 5}>,
                                              attune::Gelu<kTokens, 5>>>();
}

TEST(Predictions, of_rows_whose_squares_overflow_are_refused) {
  const auto expect_answers = []<class Model> {
    Prediction<Model> prediction;
    EXPECT_EQ(prediction.of(1e18f), Status::kOk);
    for (const float number : {1e20f, 1e30f, -1e38f, std::numeric_limits<float>::max()})
      EXPECT_EQ(prediction.of(number), Status::kNotFinite);
  };
  expect_answers.template operator()<Normalized<attune::LayerNorm<kNorm>>>();
  expect_answers.template operator()<Normalized<attune::RmsNorm<kNorm>>>();
}

TEST(Predictions, ignore_the_numbers_of_padding) {
  attune::KeyPaddingMask<kTokens> padding;
  attune::SequenceLength<kTokens> length;
  EXPECT_EQ(padding.set_length(kTokens - 1), Status::kOk);
  EXPECT_EQ(length.set_length(kTokens - 1), Status::kOk);
  Prediction<Attention> prediction;
  EXPECT_EQ(prediction.of(kNan<float>, padding), Status::kOk);
  EXPECT_EQ(prediction.of(kNan<float>, length), Status::kOk);
  EXPECT_EQ(prediction.of(kNan<float>, attune::CausalMask{} && padding), Status::kOk);
  EXPECT_EQ(prediction.of(kNan<float>, attune::CausalMask{}), Status::kNotFinite);
  prediction.x(0, 0) = kInfinity<float>;
  EXPECT_EQ(prediction.of(1, padding), Status::kNotFinite);

  using Pooled = attune::Sequential<Attention, attune::Pooling<attune::PoolingShape{kTokens, kWidth}>>;
  Prediction<Pooled> pooled;
  EXPECT_EQ(pooled.of(kNan<float>, padding), Status::kOk);
  EXPECT_EQ(pooled.of(kNan<float>), Status::kNotFinite);
}

TEST(Predictions, of_forward_only_training_are_refused_alike) {
  static attune::ForwardOnlyTrainer<Attention> trainer;
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  Attention::Input x;
  Attention::Output y;
  check::fill(x, rng);
  EXPECT_EQ(trainer.predict(x, y), Status::kOk);
  x(1, 1) = kInfinity<float>;
  EXPECT_EQ(trainer.predict(x, y), Status::kNotFinite);
}

TEST(Predictions, of_a_stream_refuse_a_token_and_keep_the_cache) {
  using Cache = attune::KeyValueCache<Attention, attune::CacheShape{.window = 2}>;
  static Attention::Parameters parameters;
  static Cache disturbed, calm;
  static Cache::Scratch<> scratch;
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  attune::Tensor<float, 1, kWidth> token, y, expected;
  for (int i = 0; i < 5; ++i) {
    check::fill(token, rng);
    auto bad = token;
    for (const float number : {kInfinity<float>, kNan<float>}) {
      bad(0, 2) = number;
      EXPECT_EQ(Attention::step(parameters, bad, y, disturbed, scratch), Status::kNotFinite);
    }
    EXPECT_EQ(Attention::step(parameters, token, y, disturbed, scratch), Status::kOk);
    EXPECT_EQ(Attention::step(parameters, token, expected, calm, scratch), Status::kOk);
    EXPECT_TRUE(check::same_bits(y, expected));
  }
}
