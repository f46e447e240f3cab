// What is trained beside constants, under every memory plan: the bits are those of one sequence after the
// other, with gradients.
#include <attune/models/frozen.hpp>

#include <attune/attention/mask.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>
#include <attune/training/adafactor.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include "training/plan_check.hpp"

namespace {

using attune::Adapted, attune::LowRank, attune::Role, attune::Sequential;

using Int8 = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8Stochastic}>;

constexpr int kTokens = 5, kWidth = 12;
constexpr LowRank kAll{.rank = 3, .roles = Role::kEverything, .alpha = 4.5};
constexpr LowRank kAllAndVectors{.rank = 2, .roles = Role::kEverything, .alpha = 3, .biases_and_norms = true};

using First = attune::Linear<attune::LinearShape{kTokens, 4, kWidth}>;
using Positions = attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>;
template <attune::NormPlacement norm>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 3}, .d_ff = 10, .norm = norm}>;
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
  using Packed = typename Layer::template ParametersOf<attune::PackedInt8Weights, attune::Tensor>;
  static inline Narrow integers;
  static inline Packed packed;

  static void fill() {
    attune::Rng rng(1);
    check::fill_set(floats, rng, -1, 1);
    EXPECT_EQ(attune::quantize(floats, integers), attune::Status::kOk);
    EXPECT_EQ(attune::quantize(floats, packed), attune::Status::kOk);
  }
};
template <class Layer, LowRank low_rank>
using BesideFloats = Adapted<Layer, Constants<Layer>::floats, low_rank>;
template <class Layer, LowRank low_rank>
using BesideIntegers = Adapted<Layer, Constants<Layer>::integers, low_rank>;

template <class Layer, LowRank low_rank>
using BesidePacked = Adapted<Layer, Constants<Layer>::packed, low_rank>;

using Whole = Sequential<First, Positions, attune::Repeat<2, After>, Pool, Head>;
using WholeAdapted = BesideFloats<Whole, kAllAndVectors>;
using Mixed =
    Sequential<First, BesideIntegers<Before, kAllAndVectors>, attune::Repeat<2, BesideFloats<After, kAll>>,
               attune::BiasesAndNorms<After, Constants<After>::integers>,
               attune::Frozen<Network, Constants<Network>::integers>, Pool, Head>;
using OfTokens = attune::Tied<
    attune::Embedding<attune::EmbeddingShape{.seq_len = kTokens, .vocabulary = 7, .d_model = kWidth}>,
    Network>;
void fill_mixed() {
  Constants<Before>::fill();
  Constants<After>::fill();
  Constants<Network>::fill();
}

template <class Model, class Optimizer = attune::AdamW, class Mask = attune::NoMask>
void expect_same_in_backward(const Mask& mask = {}) {
  check::expect_same_training<attune::UpdateInBackward, Model, 1, attune::MeanSquaredError, Optimizer>(mask);
}
template <class Model, class Mask = attune::NoMask>
void expect_same_in_lockstep(const Mask& mask = {}) {
  if constexpr (check::kDepth >= check::kQuickHost)
    check::expect_same_training<attune::Lockstep, Model, 17>(mask);
}

}  // namespace

TEST(AdaptedPlans, train_models_as_with_gradients) {
  Constants<Whole>::fill();
  expect_same_in_backward<WholeAdapted, attune::AdamW>(attune::CausalMask{});
  if constexpr (check::kDepth >= check::kFullHost)
    expect_same_in_lockstep<WholeAdapted>(attune::CausalMask{});
}

TEST(AdaptedPlans, train_next_to_integer_products_as_with_gradients) {
  fill_mixed();
  expect_same_in_backward<Sequential<First, BesidePacked<Before, kAllAndVectors>,
                                     attune::BiasesAndNorms<After, Constants<After>::packed>,
                                     attune::Frozen<Network, Constants<Network>::packed>, Pool, Head>,
                          attune::Adafactor<>>();
}

TEST(AdaptedPlans, train_layers_between_others_as_with_gradients) {
  fill_mixed();
  expect_same_in_backward<Mixed, attune::ParameterGroups<Int8>>();
  if constexpr (check::kDepth >= check::kFullHost) expect_same_in_lockstep<Mixed>();
}

TEST(AdaptedPlans, train_models_of_tokens_as_with_gradients) {
  Constants<OfTokens>::fill();
  expect_same_in_lockstep<BesideFloats<OfTokens, kAll>>();
}

TEST(AdaptedInBackward, reads_trained_roles_before_updating_them) {
  Constants<Attention>::fill();
  Constants<Network>::fill();
  constexpr LowRank kValues{.rank = 9, .roles = Role::kValues},  // of two groups of rows
      kOut{.rank = 11, .roles = Role::kAttentionOutput};
  constexpr LowRank kGate{.rank = 2, .roles = Role::kFeedForwardIn};
  expect_same_in_backward<Sequential<First, BesideFloats<Attention, kValues>, BesideIntegers<Attention, kOut>,
                                     BesideFloats<Network, kGate>>>();
}
