// Exact GELU and its derivative against libm in a wider type, over floats of every size, and beside what
// float and double make of their definition. With ATTUNE_EVERY_FLOAT=1 over every float (a minute).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

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

// GELU and what its definition makes in one type: exact by erfc in a wider one, by erf in its own.
template <Activation activation, class Scalar>
Scalar defined_gelu(Scalar x) {
  if constexpr (activation == Activation::kGelu) {
    return Scalar(0.5) * x * (1 + std::erf(x * static_cast<Scalar>(0.70710678118654752440L)));
  } else {
    const Scalar inner =
        static_cast<Scalar>(0.79788456080286535588L) * (x + static_cast<Scalar>(0.044715L) * x * x * x);
    return Scalar(0.5) * x * (1 + std::tanh(inner));
  }
}
template <class Scalar>
Scalar defined_slope(Scalar x) {
  const Scalar distribution = Scalar(0.5) * (1 + std::erf(x * static_cast<Scalar>(0.70710678118654752440L)));
  return distribution + x * std::exp(Scalar(-0.5) * x * x) * static_cast<Scalar>(0.39894228040143267794L);
}
// Φ(x), or what gelu_tanh has in its place.
template <Activation activation, class Wide>
Wide exact_factor(Wide x) {
  if constexpr (activation == Activation::kGelu) {
    return std::erfc(-x / std::sqrt(Wide(2))) / 2;
  } else {
    return 1 / (1 + std::exp(-2 * (Wide(0.79788456080286535588L) * (x + Wide(0.044715L) * x * x * x))));
  }
}

// The largest errors of x in [cell/4, (cell + 1)/4), of values and of exact GELU's derivatives.
template <Activation activation, class Scalar, class Wide>
struct CellErrors {
  double value = 0, defined = 0, slope = 0, defined_slope = 0;

  explicit CellErrors(int cell) {
    constexpr int kSize = 100'000;
    static Scalar x[kSize], y[kSize], slopes[kSize];
    attune::Rng rng(static_cast<std::uint64_t>(cell + 100));
    for (int i = 0; i < kSize; ++i) {
      slopes[i] = x[i] = static_cast<Scalar>(cell) / 4 + rng.template uniform<Scalar>(0, 0.25);
    }
    attune::kernels::activate_with_slopes<activation>(kSize, slopes, y);
    for (int i = 0; i < kSize; ++i) {
      const Wide wide = x[i], factor = exact_factor<activation>(wide);
      raise(value, static_cast<double>(y[i] - wide * factor));
      raise(defined, static_cast<double>(defined_gelu<activation>(x[i]) - wide * factor));
      if (activation != Activation::kGelu || i % 4 != 0) continue;
      const Wide derivative = factor + wide * std::exp(-wide * wide / 2) * Wide(0.39894228040143267794L);
      raise(slope, static_cast<double>(slopes[i] - derivative));
      raise(defined_slope, static_cast<double>(::defined_slope(x[i]) - derivative));
    }
  }
};

// Rounding alone makes the largest error of a cell a matter of luck: the definition's are those of the cells
// beside it, too, and those of its own times `luck`.
template <Activation activation, class Scalar, class Wide>
void expect_no_larger_errors_than_the_definition(double luck) {
  constexpr int kCells = 26;
  std::vector<CellErrors<activation, Scalar, Wide>> errors;
  for (int cell = -kCells; cell < kCells; ++cell) errors.emplace_back(cell);
  for (std::size_t i = 1; i + 1 < errors.size(); ++i) {
    const int cell = static_cast<int>(i) - kCells;
    SCOPED_TRACE("from " + std::to_string(cell / 4.0));
    EXPECT_LE(errors[i].value, (std::max)({errors[i - 1].defined, errors[i].defined, errors[i + 1].defined}));
    EXPECT_LE(errors[i].value, errors[i].defined * luck);
    EXPECT_LE(errors[i].slope, errors[i].defined_slope * 1.05);
  }
}

}  // namespace

TEST(ExactGelu, is_more_accurate_than_its_definition_in_float) {
  const Largest largest = largest_errors(1e-9f, 10.0f);
  EXPECT_LE(largest.value, 2.5e-7);
  EXPECT_LE(largest.value, largest.defined_value);
  EXPECT_LE(largest.slope, 1.6e-7);
}

TEST(ExactGelu, is_exact_far_from_zero_and_close_to_it) {
  EXPECT_LE(largest_errors(10.0f, 1e19f).value, 1e-22);  // gelu(−10) is −8e-23
  EXPECT_LE(largest_errors(1e-38f, 1e-9f).value, 1e-17);
}

TEST(ExactGelu, is_nowhere_less_accurate_than_its_definition) {
  expect_no_larger_errors_than_the_definition<Activation::kGelu, float, double>(1.01);
  expect_no_larger_errors_than_the_definition<Activation::kGelu, double, long double>(1.01);
}

TEST(TanhGelu, is_nowhere_less_accurate_than_its_definition) {
  expect_no_larger_errors_than_the_definition<Activation::kGeluTanh, float, double>(1.05);
  expect_no_larger_errors_than_the_definition<Activation::kGeluTanh, double, long double>(1.05);
}
