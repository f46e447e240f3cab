// An encoder layer of any parts that is computed once more a branch at a time has the bits of the layer.
#include <attune/models/branch_memory.hpp>

#include <bit>

#include <attune/models/checkpointed.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::BranchOptions;
using attune::Checkpointed;
using attune::NormPlacement;

template <BranchOptions options, bool keep_weights, class Scalar = float>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = 9,
                                                                             .d_model = 4,
                                                                             .num_heads = 2,
                                                                             .dropout = options.dropout,
                                                                             .keep_weights = keep_weights},
                                                               .d_ff = 6,
                                                               .norm = options.norm},
                                     Scalar>;
constexpr BranchOptions kBefore{NormPlacement::kBefore}, kAfter{NormPlacement::kAfter};
constexpr BranchOptions kDroppingBefore{NormPlacement::kBefore, 0.3},
    kDroppingAfter{NormPlacement::kAfter, 0.3};

// A network of one's own: f(x) = x ∘ w. It has no recompute_tape, and its dx may not be x.
struct Slope {
  static constexpr attune::Abilities kAbilities{.mixes_tokens = false};
  using Scalar = float;
  using Input = attune::Tensor<Scalar, 9, 4>;
  using Output = Input;
  struct Parameters {
    attune::Tensor<Scalar, 1, 4> slope;
    ATTUNE_FIELDS(Weight(slope))
  };
  struct Tape {};
  struct Scratch {
    Input spoiled;  // by forward and backward, to show who shares it
  };
  using InferenceScratch = Scratch;

  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch& scratch) {
    for (int i = 0; i < 9; ++i) {
      for (int j = 0; j < 4; ++j) y(i, j) = p.slope(0, j) * x(i, j);
    }
    for (float& value : scratch.spoiled.values) value = 1e6f;
  }
  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch& scratch) {
    forward(p, x, y, scratch);
  }
  static void backward(const Parameters& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters& gradients, Scratch& scratch) {
    for (float& value : scratch.spoiled.values) value = 1e6f;
    for (int i = 0; i < 9; ++i) {
      for (int j = 0; j < 4; ++j) {
        if constexpr (attune::kWanted<decltype(dx)>) dx(i, j) = p.slope(0, j) * dy(i, j);
        gradients.slope(0, j) += x(i, j) * dy(i, j);
      }
    }
  }
};
template <BranchOptions options>
using OfParts = attune::EncoderLayerOf<typename Encoder<options, false>::SelfAttention, Slope,
                                       attune::RmsNorm<attune::NormShape{.rows = 9, .d_model = 4}>, options>;

// Steps of a batch of two behind a mask, with two trainers of equal parameters.
template <class Layer>
void expect_bits_of_the_layer() {
  using Two = attune::Repeat<2, Layer>;
  using TwoAgain = attune::Repeat<2, Checkpointed<Layer>>;
  static attune::Trainer<Two, attune::MeanSquaredError, attune::AdamW, 2> plain;
  static attune::Trainer<TwoAgain, attune::MeanSquaredError, attune::AdamW, 2> again;
  static_assert(sizeof again <= sizeof plain);
  attune::KeyPaddingMask<9> padding;
  EXPECT_EQ(padding.set_length(7), attune::Status::kOk);
  check::expect_same_steps(plain, again, attune::CausalMask{} && padding);
}

using Constant = Encoder<kBefore, false>;
Constant::Parameters constant_before;
Encoder<kAfter, false>::Parameters constant_after;
using TwoAfter = attune::Repeat<2, Encoder<kAfter, false>>;
using TwoAgain = attune::Repeat<2, Checkpointed<Encoder<kAfter, false>>>;
TwoAfter::Parameters constant_two;
TwoAgain::Parameters constant_again;

// Gradients of what is trained beside constants, dx asked for and not.
template <class Plain, class Again>
void expect_gradients_of_the_layer() {
  static typename Plain::Parameters parameters, gradients;
  static typename Again::Parameters gradients_again;
  static typename Plain::Input x, dx, dx_again;
  static typename Plain::Output y, y_again, dy;
  static typename Plain::Tape tape;
  static typename Plain::Scratch scratch;
  static typename Again::Tape tape_again;
  static typename Again::Scratch scratch_again;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  check::fill(dy, rng);
  gradients = {};
  Plain::forward(parameters, x, y, tape, scratch);
  Plain::backward(parameters, x, tape, dy, dx, gradients, scratch);
  const auto again = std::bit_cast<typename Again::Parameters>(parameters);
  const auto same = [] {
    return check::same_bits(std::bit_cast<typename Plain::Parameters>(gradients_again), gradients);
  };
  gradients_again = {};
  Again::forward(again, x, y_again, tape_again, scratch_again);
  EXPECT_TRUE(check::same_bits(y_again, y));
  Again::backward(again, x, tape_again, dy, dx_again, gradients_again, scratch_again);
  EXPECT_TRUE(check::same_bits(dx_again, dx));
  EXPECT_TRUE(same());
  gradients_again = {};
  Again::forward(again, x, y_again, tape_again, scratch_again);
  Again::backward(again, x, tape_again, dy, attune::NoGradient{}, gradients_again, scratch_again);
  EXPECT_TRUE(same());
}

}  // namespace

TEST(RecomputedBranches, gradients_are_derivatives) {
  check::check_layer_gradients<Checkpointed<Encoder<kBefore, false, double>>>(-1, 1);
  check::check_layer_gradients<Checkpointed<Encoder<kDroppingBefore, false, double>>>(-1, 1);
}

TEST(RecomputedBranches, take_parts_that_know_only_forward_and_backward) {
  if constexpr (!check::kQuickBuild) {
    expect_bits_of_the_layer<OfParts<kBefore>>();
  } else {
    check::leave_case();
  }
  expect_bits_of_the_layer<OfParts<kDroppingAfter>>();
}

TEST(RecomputedBranches, have_the_gradients_of_the_layer_where_a_part_is_trained) {
  attune::Rng rng(7);
  check::fill_set(constant_before, rng);
  check::fill_set(constant_after, rng);
  constexpr attune::LowRank kFactors{.rank = 2,
                                     .roles = attune::Role::kQueries | attune::Role::kFeedForwardOut};
  using attune::Adapted, attune::BiasesAndNorms;
  using After = Encoder<kAfter, false>;
  expect_gradients_of_the_layer<Adapted<Constant, constant_before, kFactors>,
                                Adapted<Checkpointed<Constant>, constant_before, kFactors>>();
  if constexpr (check::kDepth >= check::kBoard) {
    expect_gradients_of_the_layer<BiasesAndNorms<Constant, constant_before>,
                                  BiasesAndNorms<Checkpointed<Constant>, constant_before>>();
  } else {
    check::leave_case();
  }
  expect_gradients_of_the_layer<BiasesAndNorms<After, constant_after>,
                                BiasesAndNorms<Checkpointed<After>, constant_after>>();
}

// Biases alone leave a first branch whose own backward would not read what stands between two layers.
TEST(RecomputedBranches, read_their_input_whatever_is_trained) {
  attune::Rng rng(7);
  check::fill_set(constant_two, rng);
  constant_again = std::bit_cast<TwoAgain::Parameters>(constant_two);
  expect_gradients_of_the_layer<attune::BiasesAndNorms<TwoAfter, constant_two>,
                                attune::BiasesAndNorms<TwoAgain, constant_again>>();
}

// A part that inherits from attention is another function than what it inherits.
TEST(RecomputedBranches, run_parts_as_they_are) {
  using Attention = Encoder<kBefore, true>::SelfAttention;
  using Layer = attune::EncoderLayerOf<attune::Residual<Attention>, Slope,
                                       attune::RmsNorm<attune::NormShape{.rows = 9, .d_model = 4}>, kBefore>;
  expect_bits_of_the_layer<Layer>();
}
