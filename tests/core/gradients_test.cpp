#include <attune/core/gradients.hpp>

#include <attune/layers/linear.hpp>
#include <attune/training/adam.hpp>

#include "check.hpp"

namespace {

using attune::GradientClipping;
using attune::Status;
using check::kInfinity;
using check::kNan;

using Gradients = attune::LinearParameters<float, 7, 5, true>;

Gradients random_gradients(double size) {
  attune::Rng rng(1);
  Gradients gradients;
  check::fill_set(gradients, rng, -size, size);
  return gradients;
}

double norm_in_double(const Gradients& gradients) {
  double squares = 0;
  attune::for_each_tensor(
      [&squares](const attune::TensorPath&, const auto& tensor) {
        for (const float value : tensor.values)
          squares += static_cast<double>(value) * static_cast<double>(value);
      },
      gradients);
  return attune::kernels::square_root(squares);
}

template <class Clipping>
float factor_of(const Clipping& clipping, const Gradients& gradients) {
  return clipping.factor(clipping.template norm<float>(gradients));
}

// Calls a check with one number after the other being `bad`.
template <class Check>
void for_each_spoiled(Gradients& gradients, float bad, const Check& check) {
  attune::for_each_tensor(
      [&](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) {
          const float kept = value;
          value = bad;
          check();
          value = kept;
        }
      },
      gradients);
}

// Each scaled entry has a rounding, its square two, the sums and the end some ten.
constexpr double kTolerance = 16 * 0x1p-24;

}  // namespace

TEST(SumOfSquares, is_not_finite_where_one_number_is_not) {
  Gradients gradients = random_gradients(1e18);
  const auto finite = [&] { return attune::detail::finite(attune::sum_of_squares<float>(gradients)); };
  EXPECT_TRUE(finite());
  for (const float bad : {kNan<float>, kInfinity<float>, -kInfinity<float>, 1e20f}) {
    for_each_spoiled(gradients, bad, [&] { EXPECT_FALSE(finite()); });
  }
}

TEST(GradientNorm, is_not_finite_where_one_number_is_not) {
  Gradients gradients = random_gradients(1);
  for (const float bad : {kNan<float>, kInfinity<float>, -kInfinity<float>}) {
    for_each_spoiled(gradients, bad,
                     [&] { EXPECT_FALSE(attune::detail::finite(attune::gradient_norm<float>(gradients))); });
  }
}

TEST(GradientNorm, of_nothing_but_nan_is_not_finite) {
  Gradients gradients;
  attune::for_each_tensor(
      [](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) value = kNan<float>;
      },
      gradients);
  EXPECT_TRUE(check::is_nan(attune::gradient_norm<float>(gradients)));
}

TEST(GradientNorm, is_the_norm_over_all_tensors) {
  for (const double size : {1.0, 1e-3, 1e3, 1e15, 1e-15}) {
    const Gradients gradients = random_gradients(size);
    const double exact = norm_in_double(gradients);
    EXPECT_NEAR(attune::gradient_norm<float>(gradients), exact, exact * kTolerance);
  }
}

TEST(GradientNorm, of_huge_and_tiny_gradients_neither_overflows_nor_vanishes) {
  for (const double size : {1e30, 1e37, 1e-30, 1e-36}) {
    const Gradients gradients = random_gradients(size);
    const double exact = norm_in_double(gradients);
    EXPECT_NEAR(attune::gradient_norm<float>(gradients), exact, exact * kTolerance);
  }
}

TEST(GradientNorm, of_zeros_is_zero) { EXPECT_EQ(attune::gradient_norm<float>(Gradients{}), 0.0f); }

TEST(GradientNorm, of_one_entry_is_its_magnitude) {
  Gradients gradients{};
  gradients.bias(0, 4) = -3.0f;
  EXPECT_EQ(attune::gradient_norm<float>(gradients), 3.0f);
}

TEST(GradientClipping, scales_longer_gradients_to_the_bound) {
  const Gradients gradients = random_gradients(1);
  const double norm = norm_in_double(gradients);
  const float factor = factor_of(GradientClipping{0.5f}, gradients);
  EXPECT_NEAR(factor, 0.5 / (norm + 1e-6), 0.5 / norm * kTolerance);
}

TEST(GradientClipping, leaves_shorter_gradients_alone) {
  EXPECT_EQ(factor_of(GradientClipping{1000.0f}, random_gradients(1)), 1.0f);
  EXPECT_EQ(factor_of(GradientClipping{1e-3f}, Gradients{}), 1.0f);
}

TEST(GradientClipping, brings_huge_gradients_down) {
  const Gradients gradients = random_gradients(1e30);
  const double factor = static_cast<double>(factor_of(GradientClipping{1.0f}, gradients));
  EXPECT_NEAR(factor * norm_in_double(gradients), 1.0, 2 * kTolerance);
}

TEST(GradientClipping, refuses_a_bound_that_is_not_positive) {
  EXPECT_EQ(GradientClipping{1.0f}.check(), Status::kOk);
  EXPECT_EQ(GradientClipping{0.0f}.check(), Status::kInvalidMaxNorm);
  EXPECT_EQ(GradientClipping{-1.0f}.check(), Status::kInvalidMaxNorm);
  EXPECT_EQ(GradientClipping{kNan<float>}.check(), Status::kInvalidMaxNorm);
}

TEST(NoClipping, reports_the_norm) {
  for (const double size : {1e-12, 1.0, 1e12}) {
    const Gradients gradients = random_gradients(size);
    const double exact = norm_in_double(gradients);
    EXPECT_NEAR(attune::NoClipping::norm<float>(gradients), exact, exact * kTolerance);
  }
}

TEST(NoClipping, is_a_factor_of_one) {
  static_assert(attune::NoClipping::check() == Status::kOk);
  EXPECT_EQ(attune::NoClipping::factor(attune::NoClipping::norm<float>(random_gradients(1))), 1.0f);
}
