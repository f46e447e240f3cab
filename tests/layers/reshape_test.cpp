// Reshape, Flatten and Transpose: order, padding, gradients, and plans of training.
#include <attune/layers/reshape.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/sequence_length.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

using Pairs = Reshape<ReshapeShape{.rows = 4, .d_model = 3, .out_rows = 2}>;

}  // namespace

TEST(Reshape, keeps_numbers_in_order) {
  static_assert(Flatten<4, 3>::Output::rows == 1 && Flatten<4, 3>::Output::cols == 12);
  static_assert(Pairs::Output::rows == 2 && Pairs::Output::cols == 6);
  check::Problem<Pairs> a(1);
  a.infer();
  const auto inferred = a.y;
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, inferred));
  a.backward();
  for (int i = 0; i < a.x.size; ++i) {
    EXPECT_EQ(a.y.values[i], a.x.values[i]);
    EXPECT_EQ(a.dx.values[i], a.dy.values[i]);
  }
}

TEST(Reshape, turns_tokens_and_features) {
  using Turned = Transpose<2, 3>;
  static_assert(Turned::Output::rows == 3 && Turned::Output::cols == 2);
  static_assert(Turned::kFingerprint != Reshape<ReshapeShape{2, 3, 3}>::kFingerprint);
  check::Problem<Turned> a(1);
  a.x = {{1, 2, 3, 4, 5, 6}};
  a.dy = {{1, 2, 3, 4, 5, 6}};
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, Turned::Output{{1, 4, 2, 5, 3, 6}}));
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, Turned::Output{{1, 4, 2, 5, 3, 6}}));
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, Turned::Input{{1, 3, 5, 2, 4, 6}}));
  SequenceLength<2> length;
  (void)length.set_length(1);
  a.x = {{1, 2, 3, check::kNan<float>, check::kNan<float>, check::kNan<float>}};
  a.infer(length);
  EXPECT_TRUE(check::same_bits(a.y, Turned::Output{{1, 0, 2, 0, 3, 0}}));
  a.forward(length);
  a.backward(length);
  EXPECT_TRUE(check::same_bits(a.dx, Turned::Input{{1, 3, 5, 0, 0, 0}}));
}

TEST(Reshape, feature_by_feature_flattens_channels_first) {
  check::Problem<Reshape<ReshapeShape{.rows = 2, .d_model = 2, .order = ReshapeOrder::kFeatures}>> a(1);
  a.x = {{1, 2, 3, 4}};
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, Flatten<2, 2>::Output{{1, 3, 2, 4}}));
}

TEST(Reshape, of_padding_is_zeros) {
  check::Problem<Flatten<3, 2>> a(1);
  a.x = {{1, 2, check::kNan<float>, check::kNan<float>, 5, 6}};
  a.dy = {{1, 2, 3, 4, 5, 6}};
  KeyPaddingMask<3> padding;
  padding.set_valid({true, false, true});
  a.forward(padding);
  EXPECT_TRUE(check::same_bits(a.y, Flatten<3, 2>::Output{{1, 2, 0, 0, 5, 6}}));
  a.backward(padding);
  EXPECT_TRUE(check::same_bits(a.dx, Flatten<3, 2>::Input{{1, 2, 0, 0, 5, 6}}));
  SequenceLength<3> length;
  (void)length.set_length(1);
  a.infer(length);
  EXPECT_TRUE(check::same_bits(a.y, Flatten<3, 2>::Output{{1, 2, 0, 0, 0, 0}}));
}

TEST(Reshape, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Flatten<3, 5, double>>(-1, 1);
  check::check_layer_gradients<Transpose<3, 5, double>>(-1, 1);
  SequenceLength<3> length;
  (void)length.set_length(2);
  check::check_layer_gradients<Flatten<3, 5, double>>(-1, 1, length);
  check::check_layer_gradients<Transpose<3, 5, double>>(-1, 1, length);
}

TEST(Reshape, trains_transposed_to_the_same_bits_in_every_plan) {
  check::expect_same_bits_in_every_plan<Transpose<4, 3>>();
}
