// The property that every layer has: backward is the derivative of forward, in double, for every parameter
// and every input; gradients accumulate; leaving out dx changes nothing else; training and inference compute
// the same.
#pragma once

#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/execution/layer.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/check_gradients.hpp>

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

/// Expects `gradient` to be that of loss() with respect to every entry of `value`; returns the largest
/// numeric one.
template <class Loss, class TensorType>
double expect_gradient(const attune::TensorPath& path, const Loss& loss, TensorType& value,
                       const TensorType& gradient) {
  static_assert(std::is_same_v<typename TensorType::Scalar, double>, "finite differences need double");
  attune::GradientCheck worst{};
  worst.error = -1;
  const double largest = attune::detail::compare_gradient(loss, path, value, gradient,
                                                          attune::GradientCheckOptions{}.step, worst);
  SCOPED_TRACE(worst.tensor);
  EXPECT_LE(worst.error, attune::GradientCheck::kTolerance);
  return largest;
}

/// The same for every tensor of a set of parameters; returns the largest entry of all gradients.
template <class Loss, class Set>
double expect_set_gradients(const Loss& loss, Set& parameters, const Set& gradients) {
  double largest = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, auto& value, const auto& gradient) {
        const double size = expect_gradient(path, loss, value, gradient);
        largest = size > largest ? size : largest;
      },
      parameters, gradients);
  return largest;
}

template <class Layer, class... Mask>
void check_derivatives(double low, double high, const Mask&... mask) {
  static attune::detail::GradientProblem<Layer> problem;
  static typename Layer::Parameters once;
  const attune::GradientCheck check =
      attune::detail::check_gradients(problem, {.low = low, .high = high}, mask...);
  SCOPED_TRACE(check.tensor);
  EXPECT_TRUE(check.ok());
  EXPECT_LE(check.error, attune::GradientCheck::kTolerance);
  EXPECT_GT(check.largest_of_input, 1e-3);
  if (attune::count_scalars(problem.parameters) > 0) {
    EXPECT_GT(check.largest_of_parameters, 0.1);
  }
  const auto backward = [&](const auto& dx) {
    (void)problem.forward(mask...);
    problem.backward(dx, mask...);
  };
  attune::set_zero(problem.gradients);
  backward(attune::view(problem.dx));
  (void)problem.infer(mask...);
  EXPECT_EQ(same_bits(problem.y, problem.inferred), !problem.kDrops);
  once = problem.gradients;
  attune::set_zero(problem.gradients);
  backward(attune::NoGradient{});
  expect_same_set(once, problem.gradients);
  backward(attune::NoGradient{});
  expect_doubled(once, problem.gradients);
}

/// The property, of a layer with one input; `mask...` goes to all calls. Entries of x and of the parameters
/// are drawn from [low, high].
template <class Layer, class... Mask>
void check_layer_gradients(double low, double high, const Mask&... mask) {
  if constexpr (kDepth >= kBoard) {
    check_derivatives<Layer>(low, high, mask...);
  } else {
    leave_case();
  }
}

/// Attention of one head, whose scores are scaled by a number or by CappedScale.
template <class Scale, class Mask>
void check_attention_gradients(std::uint64_t seed, const Scale& scale, const Mask& mask) {
  attune::Rng rng(seed);
  attune::Tensor<double, 3, 4> query, d_query;
  attune::Tensor<double, 5, 4> key, d_key;
  attune::Tensor<double, 5, 2> value, d_value;
  attune::Tensor<double, 3, 2> context, d_context;
  attune::Tensor<double, 3, 5> weights, scratch;
  fill(query, rng);
  fill(key, rng);
  fill(value, rng);
  fill(d_context, rng);
  const auto loss = [&] {
    attune::scaled_dot_product_attention(query, key, value, context, weights, scale, mask);
    return dot(context, d_context);
  };
  (void)loss();
  attune::scaled_dot_product_attention_backward(query, key, value, weights, d_context, d_query, d_key,
                                                d_value, scratch.data(), scale);
  EXPECT_GT(expect_gradient({"query"}, loss, query, d_query), 1e-3);
  EXPECT_GT(expect_gradient({"key"}, loss, key, d_key), 1e-3);
  EXPECT_GT(expect_gradient({"value"}, loss, value, d_value), 1e-3);
}

}  // namespace check
