// The logistic sigmoid and the normal distribution against libm in a wider type, densely: the bounds that
// sigmoids.hpp states.
#include <cmath>

#include <attune/kernels/simd/sigmoids.hpp>

#include "check.hpp"
#include "kernels/dense_error.hpp"

namespace {

namespace kernels = attune::kernels;
using check::largest_error;
using check::largest_ulp_error;

const auto sigmoid = [](auto x) {
  decltype(x) complement;
  return kernels::sigmoid(x, complement);
};
const auto sigmoid_complement = [](auto x) {
  decltype(x) complement;
  (void)kernels::sigmoid(x, complement);
  return complement;
};
const auto normal_tail = [](auto x) { return kernels::normal_tail(x); };
const auto normal_density = [](auto x) { return kernels::normal_density(x); };

const auto exact_sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
const auto exact_complement = [](long double x) { return 1 / (1 + std::exp(x)); };
const auto exact_tail = [](long double x) { return std::erfc(std::fabs(x) / std::sqrt(2.0L)) / 2; };
const auto exact_density = [](long double x) {
  return std::exp(-x * x / 2) * 0.39894228040143267793994605993438L;
};

template <class Scalar>
void expect_stated_errors(double tail, double density) {
  EXPECT_LE(largest_ulp_error<Scalar>(sigmoid, exact_sigmoid, -80, 20), 3.0);
  EXPECT_LE(largest_ulp_error<Scalar>(sigmoid, exact_sigmoid, -8, 8), 3.0);
  EXPECT_LE(largest_ulp_error<Scalar>(sigmoid_complement, exact_complement, -8, 80), 3.0);
  EXPECT_LE(largest_error<Scalar>(normal_tail, exact_tail, -9, 9), tail);
  EXPECT_LE(largest_error<Scalar>(normal_density, exact_density, -9, 9), density);
}

}  // namespace

TEST(SigmoidsDense, floats_are_within_the_stated_errors) { expect_stated_errors<float>(3e-8, 6e-8); }
TEST(SigmoidsDense, doubles_are_within_the_stated_errors) { expect_stated_errors<double>(1e-16, 1e-16); }
