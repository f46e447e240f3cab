#include <algorithm>

#include <attune/kernels/ops/softcap.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kInfinity;
using check::kNan;

// The largest |float's − double's| in ulp of double's value.
double float_against_double(double low, double high) {
  double largest = 0;
  for (int i = 0; i <= 3000; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / 3000);
    const double exact = kernels::hyperbolic_tangent(static_cast<double>(x));
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(exact)) & 0x7F800000u;
    const double ulp = static_cast<double>(std::bit_cast<float>(bits)) * 0x1p-23;
    const double error = (static_cast<double>(kernels::hyperbolic_tangent(x)) - exact) / ulp;
    largest = std::max(largest, error < 0 ? -error : error);
  }
  return largest;
}

template <class Scalar>
void expect_limits() {
  EXPECT_EQ(kernels::hyperbolic_tangent(kInfinity<Scalar>), Scalar(1));
  EXPECT_EQ(kernels::hyperbolic_tangent(-kInfinity<Scalar>), Scalar(-1));
  EXPECT_EQ(kernels::hyperbolic_tangent(Scalar(0)), Scalar(0));
  EXPECT_EQ(kernels::hyperbolic_tangent(Scalar(1e-30)), Scalar(1e-30));
  EXPECT_TRUE(check::is_nan(kernels::hyperbolic_tangent(kNan<Scalar>)));
}

}  // namespace

TEST(HyperbolicTangent, has_its_known_values) {
  const double expected[][2] = {{0.1, 0.099667994624955817},
                                {0.49, 0.45421643268225903},
                                {0.5, 0.46211715726000976},
                                {0.51, 0.46994519893303766},
                                {1, 0.76159415595576489},
                                {-3, -0.99505475368673045},
                                {20, 1}};
  for (const auto& [x, y] : expected) EXPECT_NEAR(kernels::hyperbolic_tangent(x), y, 3e-16);
}

TEST(HyperbolicTangent, of_floats_is_within_four_ulp_of_doubles) {
  EXPECT_LE(float_against_double(-0.6, 0.6), 4.0);
  EXPECT_LE(float_against_double(-12, 12), 4.0);
  EXPECT_LE(float_against_double(1e-6, 1e-3), 4.0);
}

TEST(HyperbolicTangent, has_limits) {
  expect_limits<float>();
  expect_limits<double>();
}

TEST(Softcap, keeps_scores_within_its_cap_and_small_ones_as_they_are) {
  float scores[] = {-1e30f, -kInfinity<float>, 0, 1e-5f, 1, 50, 1e9f, kInfinity<float>, 3};
  kernels::softcap(9, scores, 30.0f);
  EXPECT_EQ(scores[0], -30.0f);
  EXPECT_EQ(scores[1], -30.0f);
  EXPECT_EQ(scores[2], 0.0f);
  EXPECT_NEAR(scores[3], 1e-5f, 1e-11f);
  EXPECT_NEAR(scores[4], 30 * 0.033320995f, 1e-6f);
  EXPECT_NEAR(scores[5], 30 * 0.93110961f, 1e-5f);
  EXPECT_EQ(scores[7], 30.0f);
  float other = 3;
  kernels::softcap(1, &other, 30.0f);
  EXPECT_EQ(scores[8], other);  // a packet's lane has the bits of a scalar
}

TEST(Softcap, backward_is_its_slope_and_leaves_zeros) {
  double scores[] = {-2, -0.25, 0, 0.5, 4}, d_scores[] = {1, -2, 3, 0.5, 2};
  kernels::softcap_backward(5, scores, d_scores, 1.5);
  const double gradients[] = {1, -2, 3, 0.5, 2};
  for (int i = 0; i < 5; ++i) {
    double above = scores[i] + 1e-6, below = scores[i] - 1e-6;
    kernels::softcap(1, &above, 1.5);
    kernels::softcap(1, &below, 1.5);
    EXPECT_NEAR(d_scores[i], gradients[i] * (above - below) / 2e-6, 1e-9);
  }
  const float hidden = kNan<float>;
  float zero = 0;
  kernels::softcap_backward(1, &hidden, &zero, 2.0f);
  EXPECT_EQ(zero, 0.0f);
}

TEST(Softcap, has_the_same_bits_everywhere) {
  check::BitHash hash;
  attune::Rng rng(53);
  attune::Tensor<float, 1, 77> scores, gradients;
  check::fill(scores, rng, -40, 40);
  check::fill(gradients, rng);
  kernels::softcap_backward(77, scores.data(), gradients.data(), 15.0f);
  kernels::softcap(77, scores.data(), 15.0f);
  for (const float value : scores.values) hash.add(value);
  for (const float value : gradients.values) hash.add(value);
  EXPECT_EQ(hash.value(), check::by_policy(58447525u, 1258355658u));
}
