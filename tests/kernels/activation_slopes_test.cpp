// Value and derivative of one evaluation are those of two, bit for bit.
#include <attune/kernels/activation.hpp>

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

}  // namespace

TEST(Activation, value_and_slope_of_one_evaluation) {
  expect_bits_of_two_evaluations<Activation::kSilu>();
  expect_bits_of_two_evaluations<Activation::kGelu>();
  expect_bits_of_two_evaluations<Activation::kGeluTanh>();
}
