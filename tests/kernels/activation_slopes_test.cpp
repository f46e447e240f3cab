// Value and derivative of one evaluation are those of two, bit for bit, and near those of double.
#include <attune/kernels/ops/activation.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Activation;

constexpr int kSize = 67;  // packets, and a rest

template <Activation kind>
void expect_bits_of_two_evaluations() {
  attune::Tensor<float, 1, kSize> x, dy, y, value, dx;
  attune::Rng rng(3);
  check::fill(x, rng, -12, 12);
  check::fill(dy, rng);
  x.values[0] = std::numeric_limits<float>::quiet_NaN();
  kernels::activate<kind>(kSize, x.data(), value.data());
  kernels::activate_backward<kind>(kSize, x.data(), dy.data(), dx.data());

  kernels::activate_with_slopes<kind>(kSize, x.data(), y.data());
  kernels::multiply_slopes(kSize, dy.data(), x.data());
  EXPECT_TRUE(check::is_nan(y.values[0]) && check::is_nan(x.values[0]));
  y.values[0] = value.values[0], x.values[0] = dx.values[0];
  EXPECT_TRUE(check::same_bits(y, value));
  EXPECT_TRUE(check::same_bits(x, dx));
}

// From kernels that may take several elements at once, also where dx stands in place of x or dy.
template <Activation kind>
void expect_gradients_of_single_elements(float largest) {
  attune::Tensor<float, 1, kSize> x, dy, expected, dx;
  attune::Rng rng(4);
  check::fill(x, rng, -largest, largest);
  check::fill(dy, rng);
  x.values[5] = -0.0f, x.values[6] = 0.0f, x.values[9] = 12.75f, x.values[13] = -12.74f;
  for (int i = 0; i < kSize; ++i) {
    expected.values[i] = kernels::activate_backward<kind>(x.values[i], dy.values[i]);
  }
  kernels::activate_backward<kind>(kSize, x.data(), dy.data(), dx.data());
  EXPECT_TRUE(check::same_bits(dx, expected));
  dx = dy;
  kernels::activate_backward<kind>(kSize, x.data(), dx.data(), dx.data());
  EXPECT_TRUE(check::same_bits(dx, expected));
  kernels::activate_backward<kind>(kSize, x.data(), dy.data(), x.data());
  EXPECT_TRUE(check::same_bits(x, expected));
}

template <Activation kind>
void expect_gates_of_single_elements(float largest) {
  attune::Tensor<float, 1, kSize> gate, up, da, d_gate, d_up;
  attune::Rng rng(5);
  check::fill(gate, rng, -largest, largest);
  check::fill(up, rng);
  check::fill(da, rng);
  for (int i = 0; i < kSize; ++i) {
    float slope;
    d_up.values[i] = da.values[i] * kernels::activate<kind>(gate.values[i], slope);
    d_gate.values[i] = da.values[i] * up.values[i] * slope;
  }
  kernels::gate_backward<kind>(kSize, da.data(), gate.data(), up.data());
  EXPECT_TRUE(check::same_bits(gate, d_gate));
  EXPECT_TRUE(check::same_bits(up, d_up));
}

}  // namespace

TEST(Activation, value_and_slope_of_one_evaluation) {
  expect_bits_of_two_evaluations<Activation::kSilu>();
  expect_bits_of_two_evaluations<Activation::kGelu>();
  expect_bits_of_two_evaluations<Activation::kGeluTanh>();
}

TEST(Activation, gradients_of_many_elements_equal_single_ones) {
  for (const float largest : {1.0f, 12.0f, 20.0f, 200.0f}) {
    expect_gradients_of_single_elements<Activation::kSilu>(largest);
    expect_gradients_of_single_elements<Activation::kGelu>(largest);
    expect_gates_of_single_elements<Activation::kSilu>(largest);
    expect_gates_of_single_elements<Activation::kGelu>(largest);
  }
}
