// The factorization gives A back, and its substitutions solve A·x = b. A matrix without one is refused.
#include <attune/training/cholesky.hpp>

#include <limits>

#include <attune/core/rng.hpp>
#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

constexpr int kSize = 6;
using Matrix = attune::Tensor<double, kSize, kSize>;
constexpr double kNoise = kSize * std::numeric_limits<double>::epsilon();

// Zᵀ·Z of `examples` random rows.
Matrix gram_of(int examples) {
  attune::Rng rng{5};
  Matrix gram{};
  for (int example = 0; example < examples; ++example) {
    double z[kSize];
    for (double& value : z) value = rng.uniform(-1.0, 1.0);
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) gram(i, j) += z[i] * z[j];
    }
  }
  return gram;
}

TEST(Cholesky, factor_times_its_transpose_is_the_matrix) {
  const Matrix gram = gram_of(20);
  Matrix lower = gram;
  const double least = attune::detail::factor_cholesky<kSize>(lower, kNoise);
  EXPECT_GT(least, 0);
  EXPECT_LE(least, 1);
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = 0;
      for (int k = 0; k <= j; ++k) sum += lower(i, k) * lower(j, k);
      EXPECT_NEAR(sum, gram(i, j), 1e-13) << i << ", " << j;
    }
  }
}

TEST(Cholesky, substitutions_solve_the_equations) {
  constexpr int kStride = 3;  // a column of a matrix
  const Matrix gram = gram_of(20);
  Matrix lower = gram;
  ASSERT_TRUE(attune::detail::factor_cholesky<kSize>(lower, kNoise) > 0);
  double x[kSize * kStride] = {}, b[kSize] = {1, -2, 3, 0.5, 0, -1};
  for (int i = 0; i < kSize; ++i) x[i * kStride] = b[i];
  attune::detail::solve_lower<kSize>(lower, x, kStride);
  attune::detail::solve_lower_transposed<kSize>(lower, x, kStride);
  for (int i = 0; i < kSize; ++i) {
    double sum = 0;
    for (int j = 0; j < kSize; ++j) sum += gram(i, j) * x[j * kStride];
    EXPECT_NEAR(sum, b[i], 1e-11) << i;
    EXPECT_EQ(x[i * kStride + 1], 0) << i;
  }
}

TEST(Cholesky, refuses_a_matrix_that_is_singular_or_not_finite) {
  Matrix singular = gram_of(kSize - 1);  // fewer examples than features
  EXPECT_EQ(attune::detail::factor_cholesky<kSize>(singular, kNoise), 0);
  for (const double wrong :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Matrix matrix = gram_of(20);
    matrix(3, 3) = wrong;
    EXPECT_EQ(attune::detail::factor_cholesky<kSize>(matrix, kNoise), 0) << wrong;
  }
}

}  // namespace
