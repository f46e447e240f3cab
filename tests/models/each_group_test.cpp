// EachGroup: a group is a sequence of its own; gradients, dropout and plans. Values: vectors of PyTorch;
// plans: tests/zoo.
#include <attune/models/each_group.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/check_gradients.hpp>

#include "check.hpp"
#include "layer_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kGroups = 3, kTokens = 4, kWidth = 4;
constexpr EncoderLayerShape kEncoder{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                     .d_ff = 6};
template <class Scalar = float>
using Attention =
    MultiHeadAttention<AttentionShape{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, Scalar>;
/// Another number of tokens and of features behind it.
template <class Scalar = float>
using Pooled = Sequential<EncoderLayer<kEncoder, Scalar>, Pooling<PoolingShape{kTokens, kWidth}, Scalar>,
                          Linear<LinearShape{1, kWidth, 3}, Scalar>>;

/// Groups of one token, in a model of the layer suite.
struct OfTokens {
  static constexpr int kInner = 4;
  template <class Scalar>
  using Own =
      EachGroup<check::in_models::kTokens, FeedForward<FeedForwardShape{.rows = 1,
                                                                        .d_model = check::in_models::kWidth,
                                                                        .d_ff = kInner,
                                                                        .activation = Activation::kTanh},
                                                       Scalar>>;
  static constexpr int kVectors = kInner + check::in_models::kWidth;
  static constexpr int kScalars = 2 * kInner * check::in_models::kWidth + kVectors;
};

/// Group by group, the bits of the layer alone.
template <class Layer>
void expect_the_bits_of_each_group_alone() {
  using Groups = EachGroup<kGroups, Layer>;
  static check::Problem<Groups> all(1);
  static check::Problem<Layer> one(2);
  all.infer();
  const auto inferred = all.y;
  all.forward();
  EXPECT_TRUE(check::same_bits(all.y, inferred));
  all.backward();
  one.parameters = all.parameters;
  const auto take = [](const auto& from, int group, auto& to) {
    for (int i = 0; i < to.size; ++i) to.values[i] = from.values[group * to.size + i];
  };
  for (int group = 0; group < kGroups; ++group) {
    take(all.x, group, one.x);
    take(all.dy, group, one.dy);
    one.forward();
    one.backward();
    typename Layer::Output y;
    typename Layer::Input dx;
    take(all.y, group, y);
    take(all.dx, group, dx);
    EXPECT_TRUE(check::same_bits(y, one.y));
    EXPECT_TRUE(check::same_bits(dx, one.dx));
  }
  EXPECT_TRUE(check::same_bits(all.gradients, one.gradients));
}

}  // namespace

TEST(EachGroup, has_the_bits_of_each_group_alone) {
  expect_the_bits_of_each_group_alone<Attention<>>();
  expect_the_bits_of_each_group_alone<Pooled<>>();
  expect_the_bits_of_each_group_alone<Pooling<PoolingShape{kTokens, kWidth}>>();
}

TEST(EachGroup, has_the_gradients_of_finite_differences) {
  if constexpr (check::kDepth >= check::kBoard) {
    EXPECT_TRUE((check_gradients<EachGroup<kGroups, Attention<double>>>().ok()));
    EXPECT_TRUE((check_gradients<EachGroup<kGroups, Pooled<double>>>().ok()));
  }
}

TEST(EachGroup, is_causal_within_a_group) {
  constexpr AttentionShape kCausal{
      .seq_len = kTokens, .d_model = kWidth, .num_heads = 1, .window = {.right = 0}};
  using Layer = EachGroup<2, MultiHeadAttention<kCausal>>;
  check::Problem<Layer> a(1), b(1);
  b.x(kTokens + 1, 0) += 1;  // the second token of the second group
  a.infer();
  b.infer();
  for (int i = 0; i < 2 * kTokens; ++i) {
    EXPECT_EQ(check::same_bits(float(a.y(i, 0)), float(b.y(i, 0))), i < kTokens + 1);
  }
}

TEST(EachGroup, draws_dropout_for_each_group) {
  using Layer = EachGroup<2, Dropout<DropoutShape{.rows = 8, .d_model = 8, .probability = 0.5}>>;
  check::Problem<Layer> a(1);
  Rng rng(2);
  draw_seeds(a.tape, rng);
  for (int i = 0; i < a.x.size; ++i) a.x.values[i] = 1;
  a.forward();
  int different = 0;
  for (int i = 0; i < 64; ++i) different += a.y.values[i] != a.y.values[64 + i];
  EXPECT_GT(different, 16);
  EXPECT_LT(different, 48);
  a.dy = a.x;
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, a.y));
  a.forward();
  EXPECT_FALSE(check::same_bits(a.dx, a.y));
}

TEST(EachGroup, writes_over_its_input_where_the_layer_does) {
  using Layer = EachGroup<kGroups, Tanh<kTokens, kWidth>>;
  static_assert(Layer::kAbilities.output_may_be_input && Layer::kAbilities.gradient_may_be_input);
  check::Problem<Layer>(3).expect_in_place();
}

TEST(EachGroup, has_the_same_bits_in_every_plan) {
  check::expect_same_bits_in_every_plan<EachGroup<kGroups, Attention<>>>();
  check::expect_same_bits_in_every_plan<
      EachGroup<kGroups, Residual<EachGroup<2, Linear<LinearShape{2, kWidth, kWidth}>>>>>();
}

TEST(EachGroup, shares_scratch_and_has_a_tape_for_each_group) {
  using Layer = EachGroup<kGroups, Pooled<>>;
  static_assert(sizeof(Layer::Scratch) == sizeof(Pooled<>::Scratch));
  static_assert(sizeof(Layer::Tape) == kGroups * sizeof(Pooled<>::Tape));
  static_assert(std::is_same_v<Layer::Parameters, Pooled<>::Parameters>);
  static_assert(Layer::kFingerprint != EachGroup<2, Pooled<>>::kFingerprint);
  using Packed = QuantizedTape<Layer>;
  static_assert(sizeof(Packed::Tape) < sizeof(Layer::Tape));
}

ATTUNE_TEST_IN_MODEL(EachGroup, sits_in_flash, sits_in_flash, OfTokens)
ATTUNE_TEST_IN_MODEL(EachGroup, has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, OfTokens)
ATTUNE_TEST_IN_MODEL(EachGroup, goes_to_pytorch_and_back, goes_to_pytorch_and_back, OfTokens)

TEST(EachGroup, trains_in_parts) {
  using namespace check::in_models;
  expect_training<Model<OfTokens>>();
  expect_training<Tuned<OfTokens>>();
  expect_training<Adapted<Model<OfTokens>, kConstants<OfTokens>,
                          LowRank{.rank = 2, .roles = Role::kFeedForwardIn | Role::kProjections}>>();
}

TEST(EachGroup, updates_factors_in_backward_in_any_role) {
  constexpr int kFeatures = 32;
  using Linears = Linear<LinearShape{4, kFeatures, kFeatures}>;
  using Block = EncoderLayer<EncoderLayerShape{
      .attention = {.seq_len = 2, .d_model = kFeatures, .num_heads = 2}, .d_ff = 40}>;
  using Base = Sequential<EachGroup<2, Block>, Linears, Linears, Linears, Linears>;
  static constexpr Base::Parameters kBase{};
  using Model = Adapted<Base, kBase,
                        LowRank{.rank = 8,
                                .roles = Role::kProjections | Role::kQueries | Role::kFeedForwardIn,
                                .biases_and_norms = true}>;
  using Updating = Trainer<Model, MeanSquaredError, AdamW, 1, UpdateInBackward>;
  static_assert(sizeof(Updating) < sizeof(Trainer<Model, MeanSquaredError>));  // or it would be BySequence
  check::expect_same_training<UpdateInBackward, Model, 1>();
}
