// An encoder layer of any parts that is computed once more a branch at a time has the bits of the layer.
#include <attune/models/branch_memory.hpp>

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
constexpr BranchOptions kBefore{NormPlacement::kBefore};
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

// Of an epsilon that keeps third derivatives, and so finite differences' own error, small.
using TwoAfter = attune::Repeat<
    2, Checkpointed<attune::EncoderLayer<
           attune::EncoderLayerShape{
               .attention = {.seq_len = 9, .d_model = 4, .num_heads = 2}, .d_ff = 6, .epsilon = 0.1},
           double>>>;
TwoAfter::Parameters constant_two;

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

// Biases alone leave a first branch whose own backward would not read what stands between two layers.
TEST(RecomputedBranches, read_their_input_whatever_is_trained) {
  attune::Rng rng(7);
  check::fill_set(constant_two, rng);
  check::check_layer_gradients<attune::BiasesAndNorms<TwoAfter, constant_two>>(-1, 1);
}

// A part that inherits from attention is another function than what it inherits.
TEST(RecomputedBranches, run_parts_as_they_are) {
  using Attention = Encoder<kBefore, true>::SelfAttention;
  using Layer = attune::EncoderLayerOf<attune::Residual<Attention>, Slope,
                                       attune::RmsNorm<attune::NormShape{.rows = 9, .d_model = 4}>, kBefore>;
  expect_bits_of_the_layer<Layer>();
}
