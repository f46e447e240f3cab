#include <Eigen/Core>

#include <attune/layers/linear.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using attune::Tensor;
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
using WithoutBias = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2, .bias = false}>;
static_assert(sizeof(WithoutBias::Parameters) == 6 * sizeof(float));

constexpr Layer::Parameters kParameters{.weight = {{1, 2, 3, 4, 5, 6}}, .bias = {{10, 20}}};
constexpr Layer::Input kInput{{1, 0, -1, 2, 1, 0}};

}  // namespace

// Gradients: layer_gradients_test.cpp.

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

namespace {

using Wide = attune::Linear<attune::LinearShape{.rows = 5, .d_in = 39, .d_out = 37}>;

// Gradients of some features are columns of the gradient of all of them.
template <class Set>
void expect_columns_of_all(const Set& parameters) {
  Wide::Output dy;
  attune::Rng rng(2);
  check::fill(dy, rng);
  Wide::Input all;
  Wide::backward_input(parameters, dy, all);
  Tensor<float, Wide::Input::rows, 3> some;
  for (int first = 0; first < all.cols; first += some.cols) {
    Wide::backward_features(parameters, dy, first, view(some), attune::Context<>{});
    for (int i = 0; i < some.rows; ++i) {
      for (int j = 0; j < some.cols; ++j) EXPECT_EQ(some(i, j), all(i, first + j));
    }
  }
}

}  // namespace

TEST(Linear, gives_gradients_of_some_features_from_weights_in_every_storage) {
  static Wide::Parameters parameters;
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  expect_columns_of_all(parameters);
  static Wide::ParametersOf<attune::TransposedTensor, Tensor> transposed;
  attune::copy_parameters(parameters, transposed);
  expect_columns_of_all(transposed);
  static Wide::ParametersOf<attune::Int8Weights, Tensor> int8;
  EXPECT_EQ(attune::quantize(parameters, int8), attune::Status::kOk);
  expect_columns_of_all(int8);
  static Wide::ParametersOf<attune::PackedInt8Weights, Tensor> packed;
  EXPECT_EQ(attune::pack(int8, packed), attune::Status::kOk);
  expect_columns_of_all(packed);
}

TEST(Linear, takes_eigen_matrices) {
  Eigen::Matrix<float, 2, 3, Eigen::RowMajor> x = kInput.matrix();
  Eigen::Matrix<float, 2, 2, Eigen::RowMajor> y;
  Layer::Output expected;
  Layer::forward(kParameters, kInput, expected);
  Layer::forward(kParameters, x, y);
  EXPECT_EQ(check::max_difference(attune::view(y), expected), 0.0);
}
