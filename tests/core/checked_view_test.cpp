#include <Eigen/Core>

#include <attune/core/checked_view.hpp>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

using attune::checked_view;
using attune::Status;
using Matrix = attune::Tensor<float, 2, 3>;
using Tokens = std::array<int, 4>;

}  // namespace

TEST(CheckedView, has_the_size_of_the_matrix) {
  float samples[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto x = checked_view<Matrix>(std::span(samples, 6));
  static_assert(std::is_same_v<decltype(x.view), attune::MatrixView<float, 2, 3>>);
  ASSERT_TRUE(x.ok());
  EXPECT_EQ(x.view.data, samples);
  EXPECT_EQ(x.view(1, 0), 4.0f);
  const auto constant = checked_view<Matrix>(std::span<const float>(samples, 6));
  static_assert(std::is_same_v<decltype(constant.view), attune::MatrixView<const float, 2, 3>>);
  EXPECT_EQ(constant.status, Status::kOk);
}

TEST(CheckedView, refuses_another_number) {
  float samples[8] = {};
  for (const std::size_t size : {0u, 5u, 7u}) {
    const auto x = checked_view<Matrix>(std::span(samples, size));
    EXPECT_EQ(x.status, Status::kInvalidLength);
    EXPECT_TRUE(x.view.data == nullptr);
  }
}

TEST(CheckedView, of_ids_are_ids) {
  int tokens[5] = {7, 8, 9, 10, 11};
  const auto ids = checked_view<Tokens>(std::span(tokens, 4));
  static_assert(std::is_same_v<decltype(ids.view), attune::Ids<4>>);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids.view[3], 10);
  EXPECT_EQ(checked_view<Tokens>(std::span(tokens)).status, Status::kInvalidLength);
}

TEST(CheckedView, of_an_eigen_matrix_are_its_rows_and_columns) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;
  const float samples[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Map matrix(samples, 2, 3, Eigen::OuterStride<>(3));
  const auto x = checked_view<Matrix>(matrix);
  ASSERT_TRUE(x.ok());
  EXPECT_EQ(x.view(1, 2), 6.0f);
  const Map apart(samples, 2, 3, Eigen::OuterStride<>(4));
  EXPECT_EQ(checked_view<Matrix>(apart).status, Status::kInvalidLength);
  const Map transposed(samples, 3, 2, Eigen::OuterStride<>(2));
  EXPECT_EQ(checked_view<Matrix>(transposed).status, Status::kInvalidLength);
  const Eigen::Map<const Eigen::VectorXf> run(samples, 6);
  EXPECT_TRUE(checked_view<Matrix>(run).ok());
  const Eigen::Map<const Eigen::VectorXf, 0, Eigen::InnerStride<>> steps(samples, 6, Eigen::InnerStride<>(2));
  EXPECT_EQ(checked_view<Matrix>(steps).status, Status::kInvalidLength);
}
