// The property that every layer has: backward is the derivative of forward, in double, for every parameter
// and every input; gradients accumulate; leaving out dx changes nothing else; training and inference compute
// the same.
#pragma once

#include "check.hpp"

namespace check {

/// Twice the gradients, exactly: what a second backward must leave.
template <class Set>
void expect_doubled(const Set& once, const Set& twice) {
  double difference = 0;
  attune::for_each_tensor(
      [&difference](const attune::TensorPath&, const auto& one, const auto& two) {
        for (int i = 0; i < one.size; ++i) {
          if (!(two.values[i] == one.values[i] + one.values[i])) difference = 1;
        }
      },
      once, twice);
  EXPECT_EQ(difference, 0.0);
}

template <class Set>
void expect_same_set(const Set& a, const Set& b) {
  attune::for_each_tensor(
      [](const attune::TensorPath& path, const auto& one, const auto& other) {
        SCOPED_TRACE(path.name);
        EXPECT_TRUE(same_bits(one, other));
      },
      a, b);
}

/// The property, of a layer with one input; `mask...` goes to both forwards. Entries of x and of the
/// parameters are drawn from [low, high].
template <class Layer, class... Mask>
void check_layer_gradients(double low, double high, const Mask&... mask) {
  static typename Layer::Parameters parameters, gradients, once;
  static typename Layer::Input x, dx;
  static typename Layer::Output y, inferred, dy;
  static typename Layer::Tape tape;
  static typename Layer::Scratch scratch;
  static typename Layer::InferenceScratch inference;
  attune::Rng rng(17);
  fill_set(parameters, rng, low, high);
  fill(x, rng, low, high);
  fill(dy, rng);
  attune::set_zero(gradients);
  const auto loss = [&] {
    Layer::forward(parameters, x, inferred, inference, mask...);
    return dot(inferred, dy);
  };
  const auto forward = [&] { Layer::forward(parameters, x, y, tape, scratch, mask...); };
  (void)loss();
  forward();
  EXPECT_TRUE(same_bits(y, inferred));
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  const double largest = expect_set_gradients(loss, parameters, gradients);
  if (attune::count_scalars(parameters) > 0) {
    EXPECT_GT(largest, 0.1);
  }
  EXPECT_GT(expect_gradient("x", loss, x, dx), 1e-3);

  once = gradients;
  attune::set_zero(gradients);
  forward();
  Layer::backward(parameters, x, tape, dy, gradients, scratch);
  expect_same_set(once, gradients);
  forward();
  Layer::backward(parameters, x, tape, dy, gradients, scratch);
  expect_doubled(once, gradients);
}

}  // namespace check
