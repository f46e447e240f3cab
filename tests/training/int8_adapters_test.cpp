// Training in integers with factors of low rank, which stay floats, and without stored gradients: each
// gradient has the same bits in every plan.
#include <attune/training/int8_training.hpp>

#include <attune/attention/mask.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/trainer.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace {

using namespace attune;

// Enough tokens and features for integers in every product.
constexpr int kTokens = 17, kWidth = 16;
using First = Linear<LinearShape{.rows = kTokens, .d_in = 16, .d_out = kWidth}>;
using Network = FeedForward<FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 18}>;
template <bool kKeepsWeights>
using Encoder = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 1, .keep_weights = kKeepsWeights},
    .d_ff = 18}>;
using Conv = Conv1d<Conv1dShape{.seq_len = kTokens, .d_in = 16, .d_out = kWidth, .kernel = 3, .padding = 1}>;
using Pool = Pooling<PoolingShape{kTokens, kWidth}>;
using Head = Linear<LinearShape{1, kWidth, 3}>;
using OneOutput = Linear<LinearShape{kTokens, kWidth, 1}>;

template <class Layer>
struct Base {
  static inline typename Layer::Parameters floats;
  static inline typename Layer::template ParametersOf<PackedInt8Weights, Tensor> packed;
  static void fill() {
    Rng rng(1);
    initialize(floats, XavierUniform{}, rng);
    EXPECT_EQ(quantize(floats, packed), Status::kOk);
  }
};
template <class Layer, int rank>
using BesideFloats = Adapted<Layer, Base<Layer>::floats, LowRank{.rank = rank, .roles = Role::kEverything}>;
template <class Layer, int rank>
using BesidePacked = Adapted<Layer, Base<Layer>::packed, LowRank{.rank = rank, .roles = Role::kEverything}>;

template <class Model, int batch = 1>
void expect_trains_in_floats() {
  check::expect_same_training<Int8Training, Model, batch>();
}

using WithoutGradients = Int8TrainingWith<detail::NoGradientsKept<1>>;
template <class Model, class Optimizer = AdamW, class Mask = NoMask>
void expect_same_in_backward(const Mask& mask = {}) {
  check::expect_same_training<WithoutGradients, Model, 1, MeanSquaredError, Optimizer, Int8Training>(mask);
}

using Front = Sequential<First, Network>;
template <bool kKeepsWeights>
using Encoding = Sequential<First, Encoder<kKeepsWeights>>;

}  // namespace

TEST(Int8Adapters, beside_floats_train_as_without_integers) {
  Base<Front>::fill();
  expect_trains_in_floats<BesideFloats<Front, 2>, 2>();
  if constexpr (!check::kQuickBuild) {
    Base<Conv>::fill();
    Base<OneOutput>::fill();
    expect_trains_in_floats<BesideFloats<Front, 9>>();
    expect_trains_in_floats<BesideFloats<Conv, 2>, 2>();
    expect_trains_in_floats<BesideFloats<OneOutput, 1>, 2>();
    expect_trains_in_floats<QuantizedTape<BesideFloats<Front, 2>>, 2>();
  }
}

TEST(Int8Adapters, updated_in_backward_have_the_bits_of_stored_gradients) {
  Base<Front>::fill();
  expect_same_in_backward<Sequential<BesideFloats<Front, 2>, Pool, Head>>();
  if constexpr (!check::kQuickBuild) {
    Base<Encoding<true>>::fill();
    Base<Encoding<false>>::fill();
    expect_same_in_backward<Sequential<BesidePacked<Front, 2>, Pool, Head>>();
    expect_same_in_backward<Sequential<BesidePacked<Front, 9>, Pool, Head>, Sgd<>>();
    expect_same_in_backward<QuantizedTape<Sequential<BesidePacked<Front, 9>, Pool, Head>>>();
    expect_same_in_backward<Sequential<BesideFloats<Encoding<true>, 2>, Pool, Head>>(CausalMask{});
    expect_same_in_backward<Sequential<BesidePacked<Encoding<false>, 9>, Pool, Head>>(CausalMask{});
    expect_same_in_backward<Sequential<BesidePacked<Encoding<false>, 2>, Pool, Head>,
                            Sgd<Momentum::kClassic>>();
  }
}

#if !ATTUNE_TEST_QUICK
TEST(Int8Adapters, and_whole_layers_updated_in_backward_have_the_same_bits) {
  expect_same_in_backward<Sequential<First, OneOutput>>();
  expect_same_in_backward<Sequential<First, Network, OneOutput>, Sgd<>>();
  expect_same_in_backward<Sequential<Conv, Pool, Head>>();
  expect_same_in_backward<QuantizedTape<Sequential<Conv, Network, Pool, Head>>>();
  expect_same_in_backward<Encoding<true>>(CausalMask{});
  expect_same_in_backward<Encoding<false>, Sgd<Momentum::kNesterov>>();
  expect_same_in_backward<QuantizedTape<Encoding<false>>>(CausalMask{});
}
#endif
