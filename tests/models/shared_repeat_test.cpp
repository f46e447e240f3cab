// SharedRepeat: the bits of a Repeat of equal layers, one set of parameters; gradients, dropout, streams and
// plans. Values: vectors of PyTorch; plans: tests/zoo.
#include <attune/models/shared_repeat.hpp>

#include <attune/layers/dropout.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_decoder.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/last_block.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/check_gradients.hpp>

#include "check.hpp"
#include "layer_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kTimes = 3, kTokens = 4, kWidth = 4;
template <class Scalar = float>
using Square = Linear<LinearShape{kTokens, kWidth, kWidth}, Scalar>;
template <class Scalar = float>
using Block =
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                   .d_ff = 6},
                 Scalar>;

/// Applications in a model of the layer suite.
struct Applied {
  static constexpr int kInner = 4;
  template <class Scalar>
  using Own = SharedRepeat<kTimes, FeedForward<FeedForwardShape{.rows = check::in_models::kTokens,
                                                                .d_model = check::in_models::kWidth,
                                                                .d_ff = kInner,
                                                                .activation = Activation::kTanh},
                                               Scalar>>;
  static constexpr int kVectors = kInner + check::in_models::kWidth;
  static constexpr int kScalars = 2 * kInner * check::in_models::kWidth + kVectors;
};

/// The bits of a Repeat whose layers have equal parameters; gradients are the sum of its layers' gradients,
/// the last one first.
template <class Layer, class Mask = NoMask>
void expect_the_bits_of_equal_layers(const Mask& mask = {}) {
  static check::Problem<SharedRepeat<kTimes, Layer>> shared(1);
  static check::Problem<Repeat<kTimes, Layer>> equal(1);
  for (int i = 0; i < kTimes; ++i) equal.parameters.layers[i] = shared.parameters;
  equal.x = shared.x;
  equal.dy = shared.dy;
  shared.forward(mask);
  equal.forward(mask);
  EXPECT_TRUE(check::same_bits(shared.y, equal.y));
  shared.backward(mask);
  equal.backward(mask);
  EXPECT_TRUE(check::same_bits(shared.dx, equal.dx));
  for_each_tensor(
      [&](const TensorPath&, const auto& sum, const auto& a, const auto& b, const auto& c) {
        for (int i = 0; i < sum.size; ++i) {
          EXPECT_NEAR(sum.data()[i], c.data()[i] + b.data()[i] + a.data()[i], 1e-5);
        }
      },
      shared.gradients, equal.gradients.layers[0], equal.gradients.layers[1], equal.gradients.layers[2]);
}

/// A decoder layer's answers token by token, from layers in a row.
template <class Layers>
auto decode(const typename Layers::Parameters& parameters) {
  using Model = EncoderDecoder<Block<>, Layers>;
  using Cache = KeyValueCache<Model, CacheShape{.capacity = kTokens}>;
  static typename Model::Parameters all;
  static typename Model::EncoderScratch encoder_scratch;
  static Cache cache;
  static typename Cache::template Scratch<> scratch;
  Rng rng(4);
  check::fill_set(all.encoder, rng);
  all.decoder = parameters;
  Tensor<float, kTokens, kWidth> source, y;
  Tensor<float, 1, kWidth> x, row;
  check::fill(source, rng);
  EXPECT_EQ(Model::remember(all, source, cache, encoder_scratch), Status::kOk);
  for (int t = 0; t < kTokens; ++t) {
    check::fill(x, rng);
    EXPECT_EQ(Model::step(all, x, row, cache, scratch), Status::kOk);
    for (int j = 0; j < kWidth; ++j) y(t, j) = row(0, j);
  }
  return y;
}

}  // namespace

TEST(SharedRepeat, has_the_bits_of_equal_layers) {
  expect_the_bits_of_equal_layers<Square<>>();
  expect_the_bits_of_equal_layers<Block<>>();
  expect_the_bits_of_equal_layers<Block<>>(CausalMask{});
}

TEST(SharedRepeat, has_the_gradients_of_finite_differences) {
  EXPECT_TRUE((check_gradients<SharedRepeat<1, Square<double>>>().ok()));
  EXPECT_TRUE((check_gradients<SharedRepeat<2, Square<double>>>().ok()));
  if constexpr (check::kDepth >= check::kBoard) {
    EXPECT_TRUE((check_gradients<SharedRepeat<kTimes, Block<double>>>().ok()));
    EXPECT_TRUE((
        check_gradients<SharedRepeat<2, Sequential<Block<double>, SharedRepeat<2, Square<double>>>>>().ok()));
  }
}

TEST(SharedRepeat, has_one_set_and_a_tape_for_each_application) {
  using Layer = SharedRepeat<kTimes, Block<>>;
  using Equal = Repeat<kTimes, Block<>>;
  static_assert(std::is_same_v<Layer::Parameters, Block<>::Parameters>);
  static_assert(sizeof(Layer::Tape) == sizeof(Equal::Tape));
  static_assert(sizeof(Layer::Scratch) == sizeof(Equal::Scratch));
  static_assert(sizeof(Layer::InferenceScratch) == sizeof(Equal::InferenceScratch));
  static_assert(Layer::kFingerprint != Equal::kFingerprint);
  static_assert(Layer::kFingerprint != SharedRepeat<2, Block<>>::kFingerprint);
  static_assert(Layer::kAbilities.output_may_be_input == Equal::kAbilities.output_may_be_input);
  static_assert(sizeof(QuantizedTape<Layer>::Tape) < sizeof(Layer::Tape));
}

TEST(SharedRepeat, draws_dropout_for_each_application) {
  using Drop = Dropout<DropoutShape{.rows = 16, .d_model = 16, .probability = 0.5}>;
  check::Problem<SharedRepeat<2, Drop>> a(1);
  Rng rng(2);
  draw_seeds(a.tape, rng);
  for (int i = 0; i < a.x.size; ++i) a.x.values[i] = 1;
  a.forward();
  int kept = 0;
  for (int i = 0; i < 256; ++i) kept += a.y.values[i] != 0;
  EXPECT_GT(kept, 32);  // a quarter; one mask twice would keep half of them
  EXPECT_LT(kept, 96);
  a.dy = a.x;
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, a.y));
}

TEST(SharedRepeat, decodes_with_a_cache_for_each_application) {
  using Decoder =
      DecoderLayer<DecoderLayerShape{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                     .d_ff = 6,
                                     .memory_len = kTokens}>;
  static SharedRepeat<2, Decoder>::Parameters shared;
  static Repeat<2, Decoder>::Parameters equal;
  Rng rng(3);
  check::fill_set(shared, rng);
  equal.layers[0] = equal.layers[1] = shared;
  EXPECT_TRUE(
      check::same_bits((decode<SharedRepeat<2, Decoder>>(shared)), (decode<Repeat<2, Decoder>>(equal))));
  if constexpr (check::kDepth >= check::kBoard) {
    using Deep =
        DecoderLayer<DecoderLayerShape{.attention = {.seq_len = 3, .d_model = kWidth, .num_heads = 2},
                                       .d_ff = 6,
                                       .memory_len = kTokens},
                     double>;
    EXPECT_TRUE((check_gradients<EncoderDecoder<Block<double>, SharedRepeat<2, Deep>>>().ok()));
  }
}

TEST(SharedRepeat, has_the_same_bits_in_every_plan) {
  check::expect_same_bits_in_every_plan<SharedRepeat<kTimes, Block<>>>();
  check::expect_same_bits_in_every_plan<SharedRepeat<2, Sequential<Square<>, SharedRepeat<2, Square<>>>>>();
}

TEST(SharedRepeat, takes_constant_and_adapted_layers) {
  static constexpr Block<>::Parameters kBlock = [] {
    Block<>::Parameters parameters{};
    parameters.norm1.weight.values[0] = parameters.norm2.weight.values[1] = 1;
    return parameters;
  }();
  using Constant = SharedRepeat<2, Frozen<Block<>, kBlock>>;
  using LowRanks = SharedRepeat<2, Adapted<Block<>, kBlock, LowRank{.rank = 1, .biases_and_norms = true}>>;
  static_assert(std::is_empty_v<Constant::Parameters> && Constant::kFrozen && !LowRanks::kFrozen);
  check::expect_same_bits_in_every_plan<Sequential<LowRanks, Constant>>();
}

TEST(SharedRepeat, without_parameters_adds_nothing) {
  using Drop = Dropout<DropoutShape{.rows = 4, .d_model = 4, .probability = 0.5}>;
  static_assert(SharedRepeat<2, Drop>::kAbilities.additions == Additions::kOnce);
  static_assert(SharedRepeat<2, Drop>::kAbilities.lanes == Repeat<2, Drop>::kAbilities.lanes);
}

TEST(SharedRepeat, is_trained_as_a_last_block) {
  using Model = Sequential<Square<>, SharedRepeat<kTimes, Block<>>, Linear<LinearShape{kTokens, kWidth, 2}>>;
  static constexpr Model::Parameters kBase{};
  using Tuned = LastBlock<Model, kBase>;
  static_assert(count_scalars(Tuned::Parameters{}) == count_scalars(Block<>::Parameters{}) + kWidth * 2 + 2);
}

ATTUNE_TEST_IN_MODEL(SharedRepeat, sits_in_flash, sits_in_flash, Applied)
ATTUNE_TEST_IN_MODEL(SharedRepeat, has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, Applied)
ATTUNE_TEST_IN_MODEL(SharedRepeat, goes_to_pytorch_and_back, goes_to_pytorch_and_back, Applied)

TEST(SharedRepeat, trains_in_parts) {
  using namespace check::in_models;
  expect_training<Model<Applied>>();
  expect_training<Tuned<Applied>>();
  expect_training<Adapted<Model<Applied>, kConstants<Applied>,
                          LowRank{.rank = 2, .roles = Role::kFeedForwardIn | Role::kProjections}>>();
}

TEST(SharedRepeat, updates_factors_in_backward_in_any_role) {
  constexpr int kFeatures = 32;
  using Linears = Linear<LinearShape{4, kFeatures, kFeatures}>;
  using Wide = EncoderLayer<EncoderLayerShape{
      .attention = {.seq_len = 4, .d_model = kFeatures, .num_heads = 2}, .d_ff = 40}>;
  using Base = Sequential<SharedRepeat<2, Wide>, Linears, Linears, Linears, Linears>;
  static constexpr Base::Parameters kBase{};
  using Model = Adapted<Base, kBase,
                        LowRank{.rank = 8,
                                .roles = Role::kProjections | Role::kQueries | Role::kFeedForwardIn,
                                .biases_and_norms = true}>;
  using Updating = Trainer<Model, MeanSquaredError, AdamW, 1, UpdateInBackward>;
  static_assert(sizeof(Updating) < sizeof(Trainer<Model, MeanSquaredError>));  // or it would be BySequence
  check::expect_same_training<UpdateInBackward, Model, 1>();
}
