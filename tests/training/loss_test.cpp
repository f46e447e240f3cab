#include <Eigen/Core>

#include <attune/training/loss.hpp>

#include <attune/training/cross_entropy.hpp>

#include "check.hpp"

namespace {

using attune::Tensor;

constexpr Tensor<float, 2, 2> kOutput{{1, 2, 3, 4}};
constexpr Tensor<float, 2, 2> kTarget{{0, 2, 5, 3}};  // errors 1, 0, −2, 1; squares sum to 6

template <class Loss>
void expect_loss(float loss, float gradient_factor) {
  Tensor<float, 2, 2> dy;
  EXPECT_EQ(Loss::forward(kOutput, kTarget, dy), loss);
  const Tensor<float, 2, 2> expected{{1 * gradient_factor, 0, -2 * gradient_factor, 1 * gradient_factor}};
  EXPECT_EQ(check::max_difference(dy, expected), 0.0);
  EXPECT_EQ(Loss::forward(kOutput, kTarget, dy, 0.5f), loss / 2);
  EXPECT_EQ(dy(1, 0), -gradient_factor);
}

}  // namespace

// Finite differences: layer_gradients_test.cpp.

TEST(Loss, mean_divides_by_the_number_of_elements) { expect_loss<attune::MeanSquaredError>(1.5f, 0.5f); }
TEST(Loss, sum_adds) { expect_loss<attune::SumSquaredError>(6.0f, 2.0f); }
TEST(Loss, half_sum_has_the_error_for_gradient) { expect_loss<attune::HalfSumSquaredError>(3.0f, 1.0f); }

TEST(Loss, gradient_may_overwrite_the_output) {
  Tensor<float, 2, 2> separate, y = kOutput;
  const float loss = attune::MeanSquaredError::forward(kOutput, kTarget, separate);
  EXPECT_EQ(attune::MeanSquaredError::forward(y, kTarget, y), loss);
  EXPECT_TRUE(check::same_bits(y, separate));
}

TEST(Loss, takes_eigen_matrices) {
  const Eigen::Matrix<float, 2, 2, Eigen::RowMajor> y = kOutput.matrix();
  Eigen::Matrix<float, 2, 2, Eigen::RowMajor> dy;
  EXPECT_EQ(attune::SumSquaredError::forward(y, kTarget, dy), 6.0f);
  EXPECT_EQ(dy(1, 0), -4.0f);
}

TEST(Loss, is_nan_for_a_nan_and_so_is_its_gradient) {
  Tensor<float, 2, 2> target = kTarget, dy;
  target(0, 1) = check::kNan<float>;
  EXPECT_TRUE(check::is_nan(attune::MeanSquaredError::forward(kOutput, target, dy)));
  EXPECT_TRUE(check::is_nan(dy(0, 1)));
  EXPECT_EQ(dy(0, 0), 0.5f);
}

TEST(BatchSums, keep_normalizers_only_where_they_can_differ) {
  attune::detail::BatchSums<attune::MeanSquaredError, float> counted{};
  attune::detail::BatchSums<attune::CrossEntropy<>, float> weighted{};
  EXPECT_TRUE(sizeof counted < sizeof weighted);
  for (const attune::LossSum<float> sequence : {attune::LossSum<float>{1, 1}, attune::LossSum<float>{2, 4}}) {
    counted.add(sequence);
    weighted.add(sequence);
  }
  EXPECT_EQ(counted.total().sum, 3.0f);
  EXPECT_EQ(counted.total().normalizer, 2.0f);
  EXPECT_EQ(weighted.total().normalizer, 5.0f);
  weighted.clear();
  EXPECT_EQ(weighted.sequences, 0);
  EXPECT_EQ(weighted.total().normalizer, 0.0f);
}
