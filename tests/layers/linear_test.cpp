#include <Eigen/Core>

#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
using WithoutBias = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2, .bias = false}>;

constexpr Layer::Parameters kParameters{.weight = {{1, 2, 3, 4, 5, 6}}, .bias = {{10, 20}}};
constexpr Layer::Input kInput{{1, 0, -1, 2, 1, 0}};

}  // namespace

// Gradients: layer_gradients_test.cpp.

TEST(Linear, multiplies_by_the_weight_and_adds_the_bias) {
  Layer::Output y;
  Layer::forward(kParameters, kInput, y);
  const Layer::Output expected{{1 - 5 + 10, 2 - 6 + 20, 2 + 3 + 10, 4 + 4 + 20}};
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(Linear, without_bias_has_none) {
  const WithoutBias::Parameters parameters{.weight = kParameters.weight};
  static_assert(sizeof(parameters) == 6 * sizeof(float));
  WithoutBias::Output y;
  WithoutBias::forward(parameters, kInput, y);
  const WithoutBias::Output expected{{-4, -4, 5, 8}};
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(Linear, inference_and_training_forward_agree) {
  Layer::Output inference, training;
  Layer::InferenceScratch inference_scratch;
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::forward(kParameters, kInput, inference, inference_scratch);
  Layer::forward(kParameters, kInput, training, tape, scratch);
  EXPECT_TRUE(check::same_bits(inference, training));
}

TEST(Linear, input_gradient_can_be_added_to_another) {
  Layer::Output dy{{1, 2, 3, 4}};
  Layer::Input once, twice;
  Layer::backward_input(kParameters, dy, once);
  Layer::backward_input(kParameters, dy, twice);
  Layer::backward_input(kParameters, dy, twice, attune::kernels::Accumulate{});
  const Layer::Input expected{{5, 11, 17, 11, 25, 39}};
  EXPECT_TRUE(check::same_bits(once, expected));
  for (int i = 0; i < once.size; ++i) EXPECT_EQ(twice.values[i], 2 * once.values[i]);
}

TEST(Linear, takes_eigen_matrices) {
  Eigen::Matrix<float, 2, 3, Eigen::RowMajor> x = kInput.matrix();
  Eigen::Matrix<float, 2, 2, Eigen::RowMajor> y;
  Layer::Output expected;
  Layer::forward(kParameters, kInput, expected);
  Layer::forward(kParameters, x, y);
  EXPECT_EQ(check::max_difference(attune::view(y), expected), 0.0);
}
