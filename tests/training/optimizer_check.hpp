// What the tests of optimizers share.
#pragma once

#include <attune/layers/linear.hpp>
#include <attune/training/optimizer.hpp>

#include "check.hpp"

namespace check {

using attune::Status;

template <class Scalar>
using Set = attune::LinearParameters<Scalar, 3, 5, true>;

template <class Optimizer>
struct State {
  using Parameters = Set<typename Optimizer::Scalar>;
  Parameters parameters, gradients;
  typename Optimizer::template Moments<Parameters> moments{};
  State() {
    attune::Rng rng(1);
    fill_set(parameters, rng);
    fill_set(gradients, rng);
  }
  [[nodiscard]] Status step(const typename Optimizer::Options& options) {
    return Optimizer::step(parameters, gradients, moments, options);
  }
};

// Member by member: there may be padding between them.
template <class Moments>
bool same_moments(const Moments& a, const Moments& b) {
  if constexpr (requires { a.velocity; }) {
    return same_bits(a.velocity, b.velocity) && a.started == b.started;
  } else if constexpr (requires { a.first; }) {
    return same_bits(a.first, b.first) && same_bits(a.second, b.second) &&
           a.beta1_correction.complement == b.beta1_correction.complement &&
           a.beta2_correction.complement == b.beta2_correction.complement;
  } else {
    return std::is_empty_v<Moments>;
  }
}

// Refused, and every bit of parameters and moments as it was.
template <class Optimizer>
void expect_refused(const typename Optimizer::Options& options, Status status) {
  static State<Optimizer> state;
  EXPECT_EQ(state.step({}), Status::kOk);
  const auto parameters = state.parameters;
  const auto moments = state.moments;
  EXPECT_EQ(Optimizer::check(options), status);
  EXPECT_EQ(state.step(options), status);
  EXPECT_TRUE(same_bits(state.parameters, parameters));
  EXPECT_TRUE(same_moments(state.moments, moments));
}

}  // namespace check
