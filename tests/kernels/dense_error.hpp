// The largest error of a function against a wider type, over many samples of an interval. Host only.
#pragma once

#include <cmath>
#include <string>

#include "check.hpp"

namespace check {

inline constexpr int kDenseSamples = 2'000'000;

/// In units of the last place.
template <class Scalar, class Function, class Exact>
double largest_ulp_error(const Function& function, const Exact& exact, double low, double high) {
  long double largest = 0;
  for (int i = 0; i <= kDenseSamples; ++i) {
    const auto x = static_cast<Scalar>(low + (high - low) * i / kDenseSamples);
    const long double right = exact(static_cast<long double>(x));
    int exponent;
    std::frexp(right, &exponent);
    const long double ulp = std::ldexp(1.0L, exponent - std::numeric_limits<Scalar>::digits);
    const long double error = std::fabs(static_cast<long double>(function(x)) - right) / ulp;
    if (!(error <= largest)) largest = error;
  }
  testing::Test::RecordProperty("largest_error", std::to_string(static_cast<double>(largest)));
  return static_cast<double>(largest);
}

/// Absolute.
template <class Scalar, class Function, class Exact>
double largest_error(const Function& function, const Exact& exact, double low, double high) {
  long double largest = 0;
  for (int i = 0; i <= kDenseSamples; ++i) {
    const auto x = static_cast<Scalar>(low + (high - low) * i / kDenseSamples);
    const long double error =
        std::fabs(static_cast<long double>(function(x)) - exact(static_cast<long double>(x)));
    if (!(error <= largest)) largest = error;
  }
  testing::Test::RecordProperty("largest_error", std::to_string(static_cast<double>(largest) * 1e9) + "e-9");
  return static_cast<double>(largest);
}

}  // namespace check
