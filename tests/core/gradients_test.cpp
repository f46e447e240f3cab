#include <attune/core/gradients.hpp>

#include <attune/layers/linear.hpp>

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

// Each scaled entry has a rounding, its square two, the sums and the end some ten.
constexpr double kTolerance = 16 * 0x1p-24;

}  // namespace

TEST(AllFinite, finds_one_bad_number_anywhere) {
  Gradients gradients = random_gradients(1.7e38);
  EXPECT_TRUE(attune::all_finite(gradients));
  for (const float bad : {kNan<float>, kInfinity<float>, -kInfinity<float>}) {
    attune::for_each_tensor(
        [&](const attune::TensorPath&, auto& tensor) {
          for (float& value : tensor.values) {
            const float kept = value;
            value = bad;
            EXPECT_FALSE(attune::all_finite(gradients));
            value = kept;
          }
        },
        gradients);
  }
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
  const float factor = GradientClipping{0.5f}.factor<float>(gradients);
  EXPECT_NEAR(factor, 0.5 / (norm + 1e-6), 0.5 / norm * kTolerance);
}

TEST(GradientClipping, leaves_shorter_gradients_alone) {
  EXPECT_EQ(GradientClipping{1000.0f}.factor<float>(random_gradients(1)), 1.0f);
  EXPECT_EQ(GradientClipping{1e-3f}.factor<float>(Gradients{}), 1.0f);
}

TEST(GradientClipping, brings_huge_gradients_down) {
  const Gradients gradients = random_gradients(1e30);
  const double factor = static_cast<double>(GradientClipping{1.0f}.factor<float>(gradients));
  EXPECT_NEAR(factor * norm_in_double(gradients), 1.0, 2 * kTolerance);
}

TEST(GradientClipping, refuses_a_bound_that_is_not_positive) {
  EXPECT_EQ(GradientClipping{1.0f}.check(), Status::kOk);
  EXPECT_EQ(GradientClipping{0.0f}.check(), Status::kInvalidMaxNorm);
  EXPECT_EQ(GradientClipping{-1.0f}.check(), Status::kInvalidMaxNorm);
  EXPECT_EQ(GradientClipping{kNan<float>}.check(), Status::kInvalidMaxNorm);
}

TEST(NoClipping, is_a_factor_of_one) {
  static_assert(attune::NoClipping::check() == Status::kOk);
  EXPECT_EQ(attune::NoClipping::factor<float>(random_gradients(1e30)), 1.0f);
}
