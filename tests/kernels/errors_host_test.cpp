// The largest errors that kernels/ops/softmax.hpp and kernels/ops/update.hpp state, against long double; exp
// over every float, on demand:  ATTUNE_EVERY_FLOAT=1 build/host/tests/attune_kernels_tests
// --gtest_filter=Errors.*   (a minute)
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <attune/kernels/ops/softmax.hpp>
#include <attune/kernels/ops/update.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

// |value − exact| in units in the last place of a float of that magnitude.
long double ulps(float value, long double exact, long double magnitude) {
  int exponent;
  std::frexp(magnitude, &exponent);
  return std::fabs(static_cast<long double>(value) - exact) / std::ldexp(1.0L, exponent - 24);
}

template <int kCols>
long double largest_softmax_excess(float range) {
  attune::Rng rng(kCols);
  long double largest = 0;
  for (int row = 0; row < 100000 / kCols; ++row) {
    float x[kCols];
    long double exact[kCols], largest_score = -1e9L, sum = 0;
    for (float& score : x) score = rng.uniform(-range, range);
    for (const float score : x) largest_score = std::max(largest_score, static_cast<long double>(score));
    for (int j = 0; j < kCols; ++j)
      sum += exact[j] = std::exp(static_cast<long double>(x[j]) - largest_score);
    long double distance[kCols];
    for (int j = 0; j < kCols; ++j) distance[j] = largest_score - static_cast<long double>(x[j]);
    kernels::softmax_rows<float, 1, kCols>(x);
    for (int j = 0; j < kCols; ++j) {
      largest = std::max(largest, ulps(x[j], exact[j] / sum, exact[j] / sum) - distance[j]);
    }
  }
  return largest;
}

}  // namespace

TEST(Errors, softmax_is_within_four_ulp_and_the_distance_to_the_largest_score) {
  EXPECT_LE(largest_softmax_excess<3>(2), 4.0L);
  EXPECT_LE(largest_softmax_excess<8>(10), 4.0L);
  EXPECT_LE(largest_softmax_excess<16>(30), 4.0L);
  EXPECT_LE(largest_softmax_excess<37>(10), 4.0L);
  EXPECT_LE(largest_softmax_excess<256>(10), 4.0L);
}

TEST(Errors, adamw_is_within_two_ulp_for_moments_and_six_for_parameters) {
  attune::Rng rng(3);
  const kernels::AdamCoefficients<float> c{.beta1 = 0.9f,
                                           .one_minus_beta1 = 0.1f,
                                           .beta2 = 0.999f,
                                           .one_minus_beta2 = 0.001f,
                                           .step_size = 1e-3f,
                                           .second_scale = 1.3f,
                                           .epsilon = 1e-8f,
                                           .decay = 0.99999f,
                                           .l2 = 0,
                                           .gradient_scale = 1};
  const auto spread = [&rng](float low, float high) { return std::exp2(rng.uniform(low, high)); };
  long double first = 0, second = 0, parameter = 0;
  for (int i = 0; i < 300000; ++i) {
    float p = rng.uniform(-1.0f, 1.0f), g = rng.uniform(-1.0f, 1.0f) * spread(-20, 4);
    float m = rng.uniform(-1.0f, 1.0f) * spread(-20, 4), v = spread(-40, 8);
    const auto old_p = static_cast<long double>(p), old_m = c.beta1 * static_cast<long double>(m);
    const auto new_g = c.one_minus_beta1 * static_cast<long double>(g);
    const long double exact_m = old_m + new_g;
    const long double exact_v = c.beta2 * static_cast<long double>(v) +
                                c.one_minus_beta2 * static_cast<long double>(g) * static_cast<long double>(g);
    const long double step = c.step_size * exact_m / (std::sqrt(exact_v) * c.second_scale + c.epsilon);
    kernels::adam_update<false, false>(1, &p, &g, &m, &v, c);
    first = std::max(first, ulps(m, exact_m, std::max(std::fabs(old_m), std::fabs(new_g))));
    second = std::max(second, ulps(v, exact_v, exact_v));
    parameter =
        std::max(parameter, ulps(p, old_p * c.decay - step, std::max(std::fabs(old_p), std::fabs(step))));
  }
  EXPECT_LE(first, 2.0L);
  EXPECT_LE(second, 2.0L);
  EXPECT_LE(parameter, 6.0L);
}

TEST(Errors, exponential_of_every_float) {
  if (std::getenv("ATTUNE_EVERY_FLOAT") == nullptr) GTEST_SKIP() << "on demand: ATTUNE_EVERY_FLOAT=1";
  double largest = 0;
  for (std::uint32_t bits = 0x80000000u; bits <= std::bit_cast<std::uint32_t>(-87.0f); ++bits) {
    const auto x = std::bit_cast<float>(bits);
    const double exact = std::exp(static_cast<double>(x));
    int exponent;
    std::frexp(exact, &exponent);
    const double error =
        std::fabs(static_cast<double>(kernels::exponential(x)) - exact) / std::ldexp(1.0, exponent - 24);
    largest = std::max(largest, error);
  }
  testing::Test::RecordProperty("largest_error", std::to_string(largest));
  EXPECT_LE(largest, ATTUNE_FUSED ? 1.02 : 1.0);
}
