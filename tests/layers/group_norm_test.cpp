// GroupNorm: statistics of groups, derivatives, padding, and its name in files.
#include <attune/layers/group_norm.hpp>

#include <cmath>

#include <attune/attention/mask.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/exchange/pytorch_names.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr GroupNormShape kShape{.rows = 4, .d_model = 6, .groups = 3};
using Layer = GroupNorm<kShape>;

}  // namespace

TEST(GroupNorm, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<GroupNorm<kShape, double>>(-1, 1);
  check::check_layer_gradients<GroupNorm<GroupNormShape{3, 19, 1}, double>>(-1, 1);
  check::check_layer_gradients<GroupNorm<GroupNormShape{3, 4, 4, 1e-2, false}, double>>(-1, 1);
  SequenceLength<4> length;
  (void)length.set_length(3);
  check::check_layer_gradients<GroupNorm<kShape, double>>(-1, 1, length);
}

TEST(GroupNorm, leaves_padding_out) {
  check::Problem<Layer> clean(4), dirty(4);
  for (int j = 0; j < 6; ++j) {
    clean.x(1, j) = 1;
    dirty.x(1, j) = check::kNan<float>;
    clean.dy(1, j) = dirty.dy(1, j) = 0;
  }
  KeyPaddingMask<4> padding;
  padding.set_valid({true, false, true, true});
  for (auto* a : {&clean, &dirty}) {
    a->forward(padding);
    a->backward(padding);
  }
  for (const int i : {0, 2, 3}) {
    for (int j = 0; j < 6; ++j) EXPECT_TRUE(check::same_bits(clean.y(i, j), dirty.y(i, j)));
  }
  EXPECT_TRUE(check::same_bits(clean.dx, dirty.dx));
  EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
}

TEST(GroupNorm, answers_nan_where_squares_overflow) {
  check::Problem<Layer> a(5);
  a.x(2, 1) = 1e20f;
  a.forward();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) EXPECT_EQ(std::isnan(a.y(i, j)), j < 2);
  }
}

TEST(GroupNorm, works_in_place) { check::Problem<Layer>(6).expect_in_place(); }

TEST(GroupNorm, is_a_module_in_files) {
  check::expect_tensors<PyTorchModule<Sequential<Layer>, "norm">>("norm.bias[6] norm.weight[6]");
}
