// Models whose layers add to a gradient once, more than once, and in several places.
#pragma once

#include <cstring>
#include <memory>

#include <attune/attune.hpp>

#include "models/own_layer/depthwise_convolution.hpp"
#include "models/own_layer/prelu.hpp"
#include "training/batch_data.hpp"

namespace parallel_layers {

constexpr int kBatch = 5;
constexpr attune::Sgd<>::Options kOptions{.learning_rate = 1.0f};

constexpr attune::EmbeddingShape kWords{.seq_len = 18, .vocabulary = 37, .d_model = 4};
using Convolution =
    attune::Conv1d<attune::Conv1dShape{.seq_len = 18, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>;
template <int tokens, int d_in, int d_out>
using Projection = attune::Linear<attune::LinearShape{tokens, d_in, d_out}>;
template <int tokens>
using EncoderOf = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = tokens, .d_model = 4, .num_heads = 2}, .d_ff = 6}>;
template <int tokens>
using Pool = attune::Pooling<attune::PoolingShape{tokens, 4}>;

using TiedModel =
    attune::Tied<attune::Embedding<kWords>, attune::Sequential<EncoderOf<18>, Projection<18, 4, 4>>>;
using Mixed =
    attune::Sequential<Projection<18, 5, 4>, Convolution, EncoderOf<18>,
                       attune::SharedRepeat<2, EncoderOf<18>>, Convolution, Pool<18>, Projection<1, 4, 5>>;
using OwnModel = attune::Sequential<Projection<18, 5, 4>, DepthwiseConvolution<18, 4, 3>, PRelu<18, 4>,
                                    Pool<18>, Projection<1, 4, 5>>;
using Dropping = attune::Sequential<
    Projection<18, 5, 4>, attune::Dropout<attune::DropoutShape{18, 4, 0.25}>, Convolution,
    attune::EncoderLayer<attune::EncoderLayerShape{
        .attention = {.seq_len = 18, .d_model = 4, .num_heads = 2, .dropout = 0.25}, .d_ff = 6}>,
    attune::Dropout<attune::DropoutShape{18, 4, 0.25}>, Pool<18>, Projection<1, 4, 5>>;
// The encoder's tokens, the memory, are more than a product sums in one block.
using Translator = attune::EncoderDecoder<
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{200, 5, 4}>,
                       attune::Conv1d<attune::Conv1dShape{
                           .seq_len = 200, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>,
    attune::Sequential<
        attune::Embedding<attune::EmbeddingShape{6, 5, 4}>,
        attune::DecoderLayer<attune::DecoderLayerShape{
            .attention = {.seq_len = 6, .d_model = 4, .num_heads = 2}, .d_ff = 6, .memory_len = 200}>,
        Projection<6, 4, 5>>>;

/// y = f(f(x)) of one Linear. Both add to the same gradients.
struct SharedLinear {
  using Layer = attune::Linear<attune::LinearShape{18, 4, 4}>;
  using Scalar = float;
  using Input = Layer::Input;
  using Output = Layer::Output;
  using Parameters = Layer::Parameters;
  struct Tape {
    Output between;
    Layer::Tape layer;
  };
  struct Scratch {
    Output d_between;
    Layer::Scratch layer;
  };
  struct InferenceScratch {
    Output between;
  };

  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch& scratch) {
    Layer::forward(p, x, scratch.between);
    Layer::forward(p, scratch.between, y);
  }
  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y, Tape& tape,
                      Scratch&) {
    Layer::forward(p, x, tape.between);
    Layer::forward(p, tape.between, y);
  }
  static void backward(const Parameters& p, attune::ConstView<Input> x, Tape& tape,
                       attune::ConstView<Output> dy, auto&& dx, Parameters& gradients, Scratch& scratch) {
    Layer::backward(p, tape.between, tape.layer, dy, attune::View<Output>(scratch.d_between), gradients,
                    scratch.layer);
    Layer::backward(p, x, tape.layer, scratch.d_between, dx, gradients, scratch.layer);
  }
};

/// y = factor·x for each feature. Adds the last token first, so its bits by token differ.
template <int kRows, int kCols>
struct Backwards {
  using Scalar = float;
  using Input = attune::Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, 1, kCols> factor;
    ATTUNE_FIELDS(NormWeight(factor))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  template <int tokens, attune::CacheShape>
  using Stream = Backwards<tokens, kCols>;

  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) y(i, j) = p.factor(0, j) * x(i, j);
    }
  }
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&) {
    for (int i = kRows - 1; i >= 0; --i) {
      for (int j = 0; j < kCols; ++j) {
        gradients.factor(0, j) += x(i, j) * dy(i, j);
        dx(i, j) = p.factor(0, j) * dy(i, j);
      }
    }
  }
};

/// Numbers of an input.
template <class Model>
constexpr int kNumbers = static_cast<int>(sizeof(typename Model::Input) / sizeof(float));

/// Four steps of a Trainer and of another trainer, the second of them refused where number `not_finite` of
/// the batch is not: the same results and states. Each goes on from the other's. `step`(data) is one of the
/// other.
template <class Trainer>
void expect_bits_of_a_trainer(auto& other, const auto& step, const typename Trainer::Options& options,
                              const auto& clipping, const auto& masks, int not_finite) {
  using attune::Status;
  const auto expected = std::make_unique<Trainer>(), between = std::make_unique<Trainer>();
  expected->initialize(attune::XavierUniform{}, attune::Rng{42});
  other.initialize(attune::XavierUniform{}, attune::Rng{42});
  for (std::uint64_t number = 0; number < 4; ++number) {
    const auto data = std::make_unique<check::Batch<Trainer>>(number);
    const bool refused = number == 1 && not_finite >= 0;
    if constexpr (requires { data->x.values; }) {
      if (refused) data->x.values[not_finite] = check::kNan<float>;
    }
    const auto one = expected->step(data->x, data->target, options, clipping, masks);
    const auto all = step(*data);
    ASSERT_EQ(all.status, one.status);
    EXPECT_EQ(one.status, refused ? Status::kNotFinite : Status::kOk);
    EXPECT_TRUE(check::same_bits(all.loss, one.loss));
    EXPECT_TRUE(check::same_bits(all.gradient_norm, one.gradient_norm));
    ASSERT_EQ(std::memcmp(&other.state(), &expected->state(), sizeof expected->state()), 0)
        << "step " << number;
    if (number == 1) {
      ASSERT_EQ(between->resume(other.state()), Status::kOk);
      ASSERT_EQ(other.resume(expected->state()), Status::kOk);
      ASSERT_EQ(expected->resume(between->state()), Status::kOk);
    }
  }
}

}  // namespace parallel_layers
