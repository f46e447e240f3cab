// LoRA of convolutions and of your own layers, under every memory plan. With a learning rate of 1, a gradient
// that differs in its last bit changes the parameters.
#include <attune/models/frozen.hpp>

#include <attune/layers/convolution.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/int8_training.hpp>
#include <attune/training/sgd.hpp>

#include "models/own_layer/depthwise_convolution.hpp"
#include "models/own_layer/prelu.hpp"
#include "training/plan_check.hpp"

namespace {

using attune::add_column_sums, attune::add_product, attune::multiply, attune::multiply_transposed,
    attune::view;
using attune::LowRank, attune::Role, attune::Sequential;

/// y = x·W + b, without the ability to update in backward.
template <int kRows, int kIn, int kOut, class ScalarType = float>
struct OwnProjection {
  using Scalar = ScalarType;
  using Input = attune::Tensor<Scalar, kRows, kIn>;
  using Output = attune::Tensor<Scalar, kRows, kOut>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Matrix<Scalar, kIn, kOut> weight;
    [[no_unique_address]] Vector<Scalar, 1, kOut> bias;
    ATTUNE_FIELDS(Weight(weight), Bias(bias))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    multiply(x, p.weight, y, attune::kernels::AddBias<Scalar>{p.bias.data()});
  }
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&) {
    if constexpr (attune::detail::kTrained<decltype(gradients.weight)>)
      add_product(x.transpose(), dy, view(gradients.weight));
    add_column_sums(dy, view(gradients.bias));
    if constexpr (attune::kWanted<decltype(dx)>) multiply_transposed(dy, p.weight, dx);
  }
};

constexpr int kTokens = 10;
using Convolution =
    attune::Conv1d<attune::Conv1dShape{.seq_len = kTokens, .d_in = 3, .d_out = 4, .kernel = 3, .padding = 1}>;
using Image = attune::Conv2d<attune::Conv2dShape{
    .height = 4, .width = 4, .d_in = 3, .d_out = 5, .kernel_height = 2, .kernel_width = 2}>;
using Own = Sequential<OwnProjection<kTokens, 3, 4>, PRelu<kTokens, 4>, DepthwiseConvolution<kTokens, 4, 3>,
                       OwnProjection<kTokens, 4, 2>>;

template <class Layer>
struct Base {
  static inline typename Layer::Parameters parameters;
  static void fill() {
    attune::Rng rng(7);
    check::fill_set(parameters, rng);
  }
};
template <class Layer, int rank, bool biases_and_norms>
using AdaptedOf =
    attune::Adapted<Layer, Base<Layer>::parameters,
                    LowRank{.rank = rank, .roles = Role::kEverything, .biases_and_norms = biases_and_norms}>;

template <class Model, class Plan, int batch = 1, class Plain = attune::BySequence>
void expect_same_training() {
  using Optimizer = attune::Sgd<attune::Momentum::kNone>;
  using Planned = attune::Trainer<Model, attune::MeanSquaredError, Optimizer, batch,
                                  typename check::TestedPlan<Plan, Optimizer>::type>;
  auto& planned = check::fresh<0, Planned>();
  auto& plain = check::fresh<1, attune::Trainer<Model, attune::MeanSquaredError, Optimizer, batch, Plain>>();
  static check::Batch<Planned> data;
  attune::Rng rng(5);
  for (int step = 0; step < 3; ++step) {
    data.draw(rng);
    EXPECT_TRUE(planned.step(data.x, data.target, {.learning_rate = 1}).ok());
    EXPECT_TRUE(plain.step(data.x, data.target, {.learning_rate = 1}).ok());
    EXPECT_TRUE(check::same_bits(planned.parameters(), plain.parameters()));
  }
}
template <class Layer, class Plan, int batch = 1, class Plain = attune::BySequence>
void expect_same_with_plan() {
  Base<Layer>::fill();
  expect_same_training<AdaptedOf<Layer, 2, true>, Plan, batch, Plain>();
  expect_same_training<AdaptedOf<Layer, 9, false>, Plan, batch,
                       Plain>();  // more rows than are updated at once
}

}  // namespace

TEST(AdaptedLayers, update_in_backward_as_with_gradients) {
  expect_same_with_plan<Convolution, attune::UpdateInBackward>();
  expect_same_with_plan<Image, attune::UpdateInBackward>();
  expect_same_with_plan<Own, attune::UpdateInBackward>();
}

TEST(AdaptedLayers, update_in_backward_when_recomputed_or_packed) {
  Base<Convolution>::fill();
  Base<Own>::fill();
  using OfOwn = AdaptedOf<Own, 2, true>;
  expect_same_training<attune::Checkpointed<OfOwn>, attune::UpdateInBackward>();
  expect_same_training<attune::QuantizedTape<OfOwn>, attune::UpdateInBackward>();
  expect_same_training<attune::Checkpointed<AdaptedOf<Convolution, 2, true>>, attune::UpdateInBackward>();
  using Recomputed = attune::Checkpointed<Own>;
  Base<Recomputed>::fill();
  expect_same_training<AdaptedOf<Recomputed, 2, true>, attune::UpdateInBackward>();
}

TEST(AdaptedLayers, train_in_lockstep_as_one_by_one) {
  if constexpr (check::kHasLanes) {
    expect_same_with_plan<Convolution, attune::Lockstep, 17>();
    expect_same_with_plan<Own, attune::Lockstep, 17>();
  }
}

TEST(AdaptedLayers, train_in_integers) {
  Base<Convolution>::fill();
  Base<Own>::fill();
  using attune::Int8Training;
  expect_same_training<AdaptedOf<Convolution, 2, true>, Int8Training, 1, Int8Training>();
  expect_same_training<AdaptedOf<Own, 2, true>, Int8Training, 1, Int8Training>();
}
