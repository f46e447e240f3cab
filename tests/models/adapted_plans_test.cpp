// What is trained beside constants, under every memory plan: the bits are those of one sequence after the
// other, with gradients.
#include <attune/models/frozen.hpp>

#include <attune/attention/mask.hpp>
#include <attune/core/quantise.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"

namespace {

using attune::Adapted, attune::LowRank, attune::Role, attune::Sequential;

constexpr int kTokens = 5, kWidth = 12;
constexpr LowRank kAll{.rank = 3, .roles = Role::kEverything, .alpha = 4.5};
constexpr LowRank kAllAndVectors{.rank = 2, .roles = Role::kEverything, .alpha = 3, .biases_and_norms = true};

using First = attune::Linear<attune::LinearShape{kTokens, 4, kWidth}>;
using Positions = attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>;
template <attune::NormPlacement norm>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .seq_len = kTokens, .d_model = kWidth, .num_heads = 3, .d_ff = 10, .norm = norm}>;
using Before = Encoder<attune::NormPlacement::kBefore>;
using After = Encoder<attune::NormPlacement::kAfter>;
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}>;
using Network = attune::SwiGlu<attune::FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 10}>;
using Pool = attune::Pooling<attune::PoolingShape{kTokens, kWidth}>;
using Head = attune::Linear<attune::LinearShape{1, kWidth, 3}>;

// Constants that are filled at run time, as floats and as integers.
template <class Layer>
struct Constants {
  using Narrow = typename Layer::template ParametersOf<attune::Int8Weights, attune::Tensor>;
  static inline typename Layer::Parameters floats;
  static inline Narrow integers;

  static void fill() {
    attune::Rng rng(1);
    check::fill_set(floats, rng, -1, 1);
    EXPECT_EQ(attune::quantise(floats, integers), attune::Status::kOk);
  }
};
template <class Layer, LowRank low_rank>
using BesideFloats = Adapted<Layer, Constants<Layer>::floats, low_rank>;
template <class Layer, LowRank low_rank>
using BesideIntegers = Adapted<Layer, Constants<Layer>::integers, low_rank>;

using Whole = Sequential<First, Positions, attune::Repeat<2, After>, Pool, Head>;
using WholeAdapted = BesideFloats<Whole, kAllAndVectors>;
using Mixed =
    Sequential<First, BesideIntegers<Before, kAllAndVectors>, attune::Repeat<2, BesideFloats<After, kAll>>,
               attune::BiasesAndNorms<After, Constants<After>::integers>,
               attune::Frozen<Network, Constants<Network>::integers>, Pool, Head>;
void fill_mixed() {
  Constants<Before>::fill();
  Constants<After>::fill();
  Constants<Network>::fill();
}

}  // namespace

namespace {

// Four steps with gradients and without.
template <class Model, class Mask = attune::NoMask>
void expect_same_in_backward(const Mask& mask = {}) {
  using Loss = attune::MeanSquaredError;
  using InBackward = attune::Trainer<Model, Loss, attune::AdamW, 1, attune::UpdateInBackward>;
  static_assert(InBackward::memory().object() == sizeof(InBackward));
  static InBackward in_backward;
  static attune::Trainer<Model, Loss> streaming;
  in_backward.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(2);
  for (int step = 0; step < 4; ++step) {
    typename Model::Input x;
    typename Model::Output target;
    check::fill(x, rng);
    check::fill(target, rng);
    const auto a = in_backward.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    const auto b = streaming.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    EXPECT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_TRUE(check::same_bits(in_backward.parameters(), streaming.parameters()));
  }
}

}  // namespace

TEST(AdaptedInBackward, trains_models_as_with_gradients) {
  Constants<Whole>::fill();
  expect_same_in_backward<WholeAdapted>(attune::CausalMask{});
}

TEST(AdaptedInBackward, trains_layers_between_others_as_with_gradients) {
  fill_mixed();
  expect_same_in_backward<Mixed>();
}

TEST(AdaptedInBackward, reads_what_some_roles_train_before_it_changes) {
  Constants<Attention>::fill();
  Constants<Network>::fill();
  constexpr LowRank kValues{.rank = 2, .roles = Role::kValues},
      kOut{.rank = 2, .roles = Role::kAttentionOutput};
  constexpr LowRank kGate{.rank = 2, .roles = Role::kFeedForwardIn};
  expect_same_in_backward<Sequential<First, BesideFloats<Attention, kValues>, BesideIntegers<Attention, kOut>,
                                     BesideFloats<Network, kGate>>>();
}

namespace {

// Three steps in lockstep and one by one.
template <class Model, int batch, class Mask = attune::NoMask>
void expect_same_in_lockstep(const Mask& mask = {}) {
  using Loss = attune::MeanSquaredError;
  using Lockstep = attune::Trainer<Model, Loss, attune::AdamW, batch, attune::Lockstep>;
  static_assert(Lockstep::memory().object() == sizeof(Lockstep));
  static Lockstep lockstep;
  static attune::Trainer<Model, Loss, attune::AdamW, batch> streaming;
  static typename Lockstep::BatchInput x;
  static typename Lockstep::BatchTarget target;
  lockstep.initialise(attune::XavierUniform{}, attune::Rng{42});
  streaming.initialise(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(3);
  for (int step = 0; step < 3; ++step) {
    check::fill(x, rng);
    check::fill(target, rng);
    const auto a = lockstep.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    const auto b = streaming.step(x, target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    EXPECT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
  }
}

}  // namespace

TEST(AdaptedInLockstep, trains_models_as_one_by_one) {
  if constexpr (check::kEveryCase) {  // boards have no lanes
    Constants<Whole>::fill();
    expect_same_in_lockstep<WholeAdapted, 17>(attune::CausalMask{});
  }
}

TEST(AdaptedInLockstep, trains_layers_between_others_as_one_by_one) {
  if constexpr (check::kEveryCase) {
    fill_mixed();
    expect_same_in_lockstep<Mixed, 17>();
  }
}
