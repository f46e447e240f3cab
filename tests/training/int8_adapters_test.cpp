// Training in integers with factors of low rank beside floats: the bits of training without integers.
#include <attune/training/int8_training.hpp>

#include <attune/layers/convolution.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace {

using namespace attune;

// Enough tokens and features for integers in every product.
constexpr int kTokens = 17, kWidth = 16;
using First = Linear<LinearShape{.rows = kTokens, .d_in = 16, .d_out = kWidth}>;
using Network = FeedForward<FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 18}>;
using Conv = Conv1d<Conv1dShape{.seq_len = kTokens, .d_in = 16, .d_out = kWidth, .kernel = 3, .padding = 1}>;
using OneOutput = Linear<LinearShape{kTokens, kWidth, 1}>;

template <class Layer>
struct Base {
  static inline typename Layer::Parameters floats;
  static void fill() {
    Rng rng(1);
    initialize(floats, XavierUniform{}, rng);
  }
};
template <class Layer, int rank>
using BesideFloats = Adapted<Layer, Base<Layer>::floats, LowRank{.rank = rank, .roles = Role::kEverything}>;
template <class Model, int batch = 1>
void expect_trains_in_floats() {
  check::expect_same_training<Int8Training, Model, batch>();
}

using Front = Sequential<First, Network>;

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
