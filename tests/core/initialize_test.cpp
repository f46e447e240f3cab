#include <attune/core/initialize.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

constexpr int kIn = 50, kOut = 80;

using Parameters = attune::LinearParameters<float, kIn, kOut, true>;
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 24, .num_heads = 2}>;
using CrossAttention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 2, .d_model = 24, .num_heads = 2, .d_key = 40, .d_value = 60}>;

struct Statistics {
  double mean = 0, variance = 0, largest = 0;
};
template <class TensorType>
Statistics statistics(const TensorType& tensor) {
  Statistics result;
  double squares = 0;
  for (const auto value : tensor.values) {
    const auto x = static_cast<double>(value);
    result.mean += x;
    squares += x * x;
    const double size = x < 0 ? -x : x;
    result.largest = size > result.largest ? size : result.largest;
  }
  result.mean /= TensorType::size;
  result.variance = squares / TensorType::size - result.mean * result.mean;
  return result;
}

template <class Initializer>
Parameters& initialized(const Initializer& initializer) {
  static Parameters parameters;
  attune::Rng rng(3);
  for (float& value : parameters.bias.values) value = 9;
  attune::initialize(parameters, initializer, rng);
  return parameters;
}

double root(double x) { return attune::kernels::square_root(x); }

template <class TensorType>
void expect_uniform(const TensorType& tensor, double bound) {
  const Statistics s = statistics(tensor);
  const double n = root(TensorType::size);
  EXPECT_NEAR(s.mean, 0.0, 5 * bound / root(3) / n);
  EXPECT_NEAR(s.variance, bound * bound / 3, 5 * bound * bound * root(4.0 / 45) / n);
  EXPECT_LE(s.largest, bound * (1 + 0x1p-22));
  EXPECT_GT(s.largest, bound * (1 - 20.0 / TensorType::size));
}
template <class TensorType>
void expect_normal(const TensorType& tensor, double mean, double deviation) {
  const Statistics s = statistics(tensor);
  const double n = root(TensorType::size);
  EXPECT_NEAR(s.mean, mean, 5 * deviation / n);
  EXPECT_NEAR(s.variance, deviation * deviation, 5 * deviation * deviation * root(2) / n);
  EXPECT_GT(s.largest, 2.5 * deviation);
}
template <class TensorType>
void expect_zero(const TensorType& tensor) {
  for (const auto value : tensor.values) EXPECT_TRUE(value == 0);
}

template <class Initializer>
void expect_uniform_weight(const Initializer& initializer, double bound) {
  const Parameters& p = initialized(initializer);
  expect_uniform(p.weight, bound);
  expect_zero(p.bias);
}
template <class Initializer>
void expect_normal_weight(const Initializer& initializer, double deviation) {
  const Parameters& p = initialized(initializer);
  expect_normal(p.weight, 0, deviation);
  expect_zero(p.bias);
}

}  // namespace

// Bounds of statistics: five standard errors.

TEST(Initialize, normal) {
  const Parameters& p = initialized(attune::Normal{.mean = 0.5f, .standard_deviation = 0.1f});
  expect_normal(p.weight, 0.5, 0.1);
  expect_zero(p.bias);
  expect_normal(initialized(attune::Normal{}).weight, 0.0, 0.02);
}

TEST(Initialize, uniform_inverse_sqrt) {
  expect_uniform_weight(attune::UniformInverseSqrt{}, root(1.0 / kIn));
}

TEST(Initialize, xavier_uniform) { expect_uniform_weight(attune::XavierUniform{}, root(6.0 / (kIn + kOut))); }

TEST(Initialize, xavier_normal) { expect_normal_weight(attune::XavierNormal{}, root(2.0 / (kIn + kOut))); }

TEST(Initialize, kaiming_uniform) { expect_uniform_weight(attune::KaimingUniform{}, root(6.0 / kIn)); }

TEST(Initialize, kaiming_normal) { expect_normal_weight(attune::KaimingNormal{}, root(2.0 / kIn)); }

TEST(Initialize, linear_default_has_pytorch_s_bounds) {
  const Parameters& p = initialized(attune::LinearDefault{});
  expect_uniform(p.weight, root(1.0 / kIn));
  expect_uniform(p.bias, root(1.0 / kIn));
}

TEST(Initialize, multihead_attention_default_packs_the_input_projections) {
  static Attention::Parameters p;
  attune::Rng rng(4);
  attune::initialize(p, attune::MultiheadAttentionDefault{}, rng);
  const double bound = root(6.0 / (24 + 3 * 24));
  expect_uniform(p.query.weight, bound);
  expect_uniform(p.key.weight, bound);
  expect_uniform(p.value.weight, bound);
  expect_uniform(p.output.weight, root(1.0 / 24));
  expect_zero(p.query.bias);
  expect_zero(p.key.bias);
  expect_zero(p.value.bias);
  expect_zero(p.output.bias);
}

TEST(Initialize, multihead_attention_default_with_other_widths_takes_each_alone) {
  static CrossAttention::Parameters p;
  attune::Rng rng(5);
  attune::initialize(p, attune::MultiheadAttentionDefault{}, rng);
  expect_uniform(p.query.weight, root(6.0 / (24 + 24)));
  expect_uniform(p.key.weight, root(6.0 / (40 + 24)));
  expect_uniform(p.value.weight, root(6.0 / (60 + 24)));
  expect_uniform(p.output.weight, root(1.0 / 24));
}

TEST(Initialize, multihead_attention_default_uses_pytorchs_linear_default_elsewhere) {
  using Model = attune::Sequential<attune::Linear<attune::LinearShape{2, kIn, 24}>,
                                   attune::LearnedPositions<attune::PositionShape{2, 24}>, Attention>;
  static Model::Parameters parameters;
  attune::Rng rng(3);
  attune::initialize(parameters, attune::MultiheadAttentionDefault{}, rng);
  expect_uniform(parameters.layer<0>().weight, root(1.0 / kIn));
  EXPECT_LE(statistics(parameters.layer<0>().bias).largest, root(1.0 / kIn));
  EXPECT_GT(statistics(parameters.layer<0>().bias).variance, 0.0);
  expect_uniform(parameters.layer<2>().query.weight, root(6.0 / (4 * 24)));
  expect_zero(parameters.layer<2>().query.bias);
}

TEST(Initialize, attention_fills_every_projection) {
  static Attention::Parameters p;
  attune::Rng rng(6);
  attune::initialize(p, attune::XavierUniform{}, rng);
  const double bound = root(6.0 / 48);
  expect_uniform(p.query.weight, bound);
  expect_uniform(p.key.weight, bound);
  expect_uniform(p.value.weight, bound);
  expect_uniform(p.output.weight, bound);
  expect_zero(p.output.bias);
  EXPECT_NE(p.query.weight(0, 0), p.key.weight(0, 0));
}

TEST(Initialize, has_the_same_bits_everywhere) {
  static Attention::Parameters p;
  check::BitHash hash;
  const auto add = [&hash](const auto& initializer) {
    attune::Rng rng(7);
    attune::initialize(p, initializer, rng);
    attune::for_each_tensor(
        [&hash](const attune::TensorPath&, const auto& tensor) {
          for (const float value : tensor.values) hash.add(value);
        },
        p);
  };
  add(attune::XavierUniform{});
  add(attune::KaimingNormal{});
  add(attune::LinearDefault{});
  EXPECT_EQ(hash.value(), check::by_policy(0x58C367AFu, 0x639D4292u));
}
