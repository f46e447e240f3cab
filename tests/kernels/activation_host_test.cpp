// Exact GELU and its derivative against libm in a wider type, over floats of every size, and beside what
// float makes of their definition. With ATTUNE_EVERY_FLOAT=1 over every float (a minute).
#include <cmath>
#include <cstdlib>

#include <attune/kernels/ops/activation.hpp>

#include "check.hpp"

namespace {

using attune::Activation;

struct Largest {
  double value = 0, slope = 0, defined_value = 0;  // errors
};

void raise(double& largest, double error) {
  if (!(std::fabs(error) <= largest)) largest = std::fabs(error);
}

Largest largest_errors(float from, float to) {
  const std::uint32_t stride = std::getenv("ATTUNE_EVERY_FLOAT") != nullptr ? 1 : 997;
  constexpr int kSize = 64;
  Largest largest;
  for (auto bits = std::bit_cast<std::uint32_t>(from); bits < std::bit_cast<std::uint32_t>(to);) {
    float x[kSize], value[kSize], slope[kSize];
    for (int i = 0; i < kSize; i += 2, bits += stride) {
      x[i] = std::bit_cast<float>(bits), x[i + 1] = -x[i];
      slope[i] = x[i], slope[i + 1] = x[i + 1];
    }
    attune::kernels::activate_with_slopes<Activation::kGelu>(kSize, slope, value);
    for (int i = 0; i < kSize; ++i) {
      const double wide = static_cast<double>(x[i]);
      const double below = std::erfc(-wide / std::sqrt(2.0)) / 2;
      const double density = std::exp(-wide * wide / 2) * 0.39894228040143267794;
      raise(largest.value, static_cast<double>(value[i]) - wide * below);
      raise(largest.slope, static_cast<double>(slope[i]) - (below + wide * density));
      const float defined = x[i] * 0.5f * (1.0f + std::erf(x[i] * 0.70710678f));
      raise(largest.defined_value, static_cast<double>(defined) - wide * below);
    }
  }
  return largest;
}

}  // namespace

TEST(ExactGelu, errs_less_than_its_definition_in_float) {
  const Largest largest = largest_errors(1e-9f, 10.0f);
  EXPECT_LE(largest.value, 2.5e-7);
  EXPECT_LE(largest.value, largest.defined_value);
  EXPECT_LE(largest.slope, 1.6e-7);
}

TEST(ExactGelu, is_exact_far_from_zero_and_close_to_it) {
  EXPECT_LE(largest_errors(10.0f, 1e19f).value, 1e-22);  // gelu(−10) is −8e-23
  EXPECT_LE(largest_errors(1e-38f, 1e-9f).value, 1e-17);
}
