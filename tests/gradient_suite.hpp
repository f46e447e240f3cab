// The property that every layer has: backward is the derivative of forward, in double, for every parameter
// and every input; gradients accumulate; leaving out dx changes nothing else; training and inference compute
// the same.
#pragma once

#include <attune/core/layer.hpp>
#include <attune/layers/dropout.hpp>

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

/// Which forward the numeric derivative is taken of: inference's, or with dropout training's.
enum class LossOf { kInference, kTraining };

template <class Layer, LossOf loss_of, class... Mask>
void check_derivatives(double low, double high, const Mask&... mask) {
  static typename Layer::Parameters parameters, gradients, once;
  static typename Layer::Input x, dx;
  static typename Layer::Output y, inferred, dy;
  static typename Layer::Tape tape, start;
  static typename Layer::Scratch scratch;
  static typename Layer::InferenceScratch inference;
  attune::Rng rng(17);
  fill_set(parameters, rng, low, high);
  fill(x, rng, low, high);
  fill(dy, rng);
  attune::set_zero(gradients);
  attune::Rng masks(3);
  attune::draw_seeds(tape, masks);
  start = tape;
  const auto forward = [&] {
    tape = start;
    Layer::forward(parameters, x, y, tape, scratch, mask...);
  };
  const auto loss = [&] {
    if constexpr (loss_of == LossOf::kTraining) {
      forward();
      return dot(y, dy);
    } else {
      Layer::forward(parameters, x, inferred, inference, mask...);
      return dot(inferred, dy);
    }
  };
  (void)loss();
  forward();
  EXPECT_EQ(same_bits(y, inferred), loss_of == LossOf::kInference);
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  const double largest = expect_set_gradients(loss, parameters, gradients);
  if (attune::count_scalars(parameters) > 0) {
    EXPECT_GT(largest, 0.1);
  }
  EXPECT_GT(expect_gradient("x", loss, x, dx), 1e-3);

  once = gradients;
  attune::set_zero(gradients);
  forward();
  Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
  expect_same_set(once, gradients);
  forward();
  Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
  expect_doubled(once, gradients);
}

/// The property, of a layer with one input; `mask...` goes to both forwards. Entries of x and of the
/// parameters are drawn from [low, high].
template <class Layer, LossOf loss_of = LossOf::kInference, class... Mask>
void check_layer_gradients(double low, double high, const Mask&... mask) {
  if constexpr (kMostCases) {
    check_derivatives<Layer, loss_of>(low, high, mask...);
  } else {
    leave_case();
  }
}

}  // namespace check
