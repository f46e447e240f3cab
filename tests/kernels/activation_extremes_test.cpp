// Activations and their slopes at infinity, NaN and the largest numbers: the rule of layers/activation.hpp.
#include <attune/kernels/ops/activation.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Activation;
using check::is_nan;

// Values and slopes at −∞ and at ∞.
struct Limits {
  double low = 0, high = check::kInfinity<double>, low_slope = 0, high_slope = 1;  // of x times a gate
};
template <Activation kind>
constexpr Limits kLimits{};
template <>
constexpr Limits kLimits<Activation::kTanh>{-1, 1, 0, 0};
template <>
constexpr Limits kLimits<Activation::kSigmoid>{0, 1, 0, 0};
template <>
constexpr Limits kLimits<Activation::kSquaredRelu>{.high_slope = check::kInfinity<double>};
template <>
constexpr Limits kLimits<Activation::kElu>{.low = -1};

// Calls body(value, slope) for `at` in a vector of some length, by every function that has them.
template <Activation kind, class Scalar, class Body>
void for_each_evaluation(Scalar at, const Body& body) {
  constexpr int kLength = 37;
  Scalar x[kLength], ones[kLength], y[kLength], slopes[kLength];
  const auto expect = [&] {
    for (int i = 0; i < kLength; ++i) body(y[i], slopes[i]);
  };
  std::fill_n(x, kLength, at);
  std::fill_n(ones, kLength, Scalar(1));
  kernels::activate<kind>(kLength, x, y);
  kernels::activate_backward<kind>(kLength, x, ones, slopes);
  expect();
  if constexpr (kernels::shares_evaluation(kind)) {
    std::copy_n(x, kLength, slopes);
    kernels::activate_with_slopes<kind>(kLength, slopes, y);
    expect();
  }
  kernels::gate<kind>(kLength, x, ones, y);
  expect();
  std::copy_n(x, kLength, slopes);
  std::copy_n(ones, kLength, y);
  kernels::gate_backward<kind>(kLength, ones, slopes, y);
  expect();
}

template <Activation kind, class Scalar>
void expect_rule() {
  constexpr Scalar kInfinity = check::kInfinity<Scalar>, kMax = std::numeric_limits<Scalar>::max();
  constexpr Limits kOf = kLimits<kind>;
  const auto limit_or_nan = [](Scalar number, double limit) {
    return is_nan(number) || number == Scalar(limit);
  };
  for_each_evaluation<kind>(kInfinity, [&](Scalar value, Scalar slope) {
    EXPECT_EQ(value, Scalar(kOf.high));
    EXPECT_TRUE(limit_or_nan(slope, kOf.high_slope));
  });
  for_each_evaluation<kind>(-kInfinity, [&](Scalar value, Scalar slope) {
    EXPECT_TRUE(limit_or_nan(value, kOf.low));
    EXPECT_TRUE(limit_or_nan(slope, kOf.low_slope));
  });
  for (const Scalar nan :
       {std::numeric_limits<Scalar>::quiet_NaN(), -std::numeric_limits<Scalar>::quiet_NaN()}) {
    for_each_evaluation<kind>(nan, [&](Scalar value, Scalar slope) {
      EXPECT_TRUE(is_nan(value));
      EXPECT_TRUE(is_nan(slope) || (kind == Activation::kRelu && slope == 0));
    });
  }
  for (const Scalar large :
       {kMax, kMax / 2, Scalar(0x1p64), Scalar(0x1p33), Scalar(0x1p32), Scalar(0x1p31)}) {
    const bool squares = kind == Activation::kSquaredRelu;
    for_each_evaluation<kind>(large, [&](Scalar value, Scalar slope) {
      EXPECT_EQ(value, squares ? large * large : kOf.high == 1 ? Scalar(1) : large);
      EXPECT_EQ(slope, squares ? large + large : Scalar(kOf.high_slope));
    });
    for_each_evaluation<kind>(-large, [&](Scalar value, Scalar slope) {
      EXPECT_EQ(value, Scalar(kOf.low));
      EXPECT_EQ(slope, Scalar(kOf.low_slope));
    });
  }
}
template <int... kinds>
void expect_rule_of_all(std::integer_sequence<int, kinds...>) {
  (expect_rule<static_cast<Activation>(kinds), float>(), ...);
  (expect_rule<static_cast<Activation>(kinds), double>(), ...);
}

}  // namespace

TEST(ActivationExtremes, are_limits_or_nan_and_never_another_number) {
  expect_rule_of_all(std::make_integer_sequence<int, attune::kActivationCount>{});
}
