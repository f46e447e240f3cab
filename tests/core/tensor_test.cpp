#include <Eigen/Core>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

using attune::MatrixView;
using attune::Tensor;

using RowMajor = Eigen::Matrix<float, 3, 4, Eigen::RowMajor>;

constexpr Tensor<float, 2, 3> kConstant{{1, 2, 3, 4, 5, 6}};
static_assert(kConstant(1, 0) == 4 && kConstant.data()[5] == 6);
constinit Tensor<float, 2, 3> zeroed{};

static_assert(std::is_trivially_copyable_v<Tensor<float, 3, 4>> &&
              std::is_standard_layout_v<Tensor<float, 3, 4>>);
static_assert(sizeof(Tensor<float, 3, 5>) == 15 * sizeof(float) &&
              sizeof(Tensor<double, 1, 3>) == 3 * sizeof(double));
static_assert(std::is_trivially_copyable_v<MatrixView<float, 3, 4>> &&
              sizeof(MatrixView<float, 3, 4>) == sizeof(float*));
// A read-only view is made from a mutable one, never the other way round.
static_assert(std::is_convertible_v<MatrixView<float, 3, 4>, MatrixView<const float, 3, 4>>);
static_assert(!std::is_convertible_v<MatrixView<const float, 3, 4>, MatrixView<float, 3, 4>>);

const float* address_of(MatrixView<const float, 3, 4> matrix) { return matrix.data; }
float* mutable_address_of(MatrixView<float, 3, 4> matrix) { return matrix.data; }

constexpr int sum_at_compile_time() {
  Tensor<float, 2, 2> t{{1, 2, 3, 4}};
  t(0, 1) = 10;
  const MatrixView<const float, 2, 2> v(t);
  return static_cast<int>(v(0, 0) + v(0, 1) + v.transpose()(0, 1) + v.columns<1>(1)(1, 0));
}
static_assert(sum_at_compile_time() == 1 + 10 + 3 + 4);

}  // namespace

TEST(Tensor, is_row_major) {
  Tensor<float, 2, 3> t{{1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(t(0, 2), 3.0f);
  EXPECT_EQ(t(1, 0), 4.0f);
  EXPECT_EQ(t.matrix()(1, 0), 4.0f);
  t.matrix()(1, 2) = 7;
  EXPECT_EQ(t.values[5], 7.0f);
  EXPECT_EQ(kConstant.matrix()(1, 2), 6.0f);
}

TEST(Tensor, set_zero_zeroes) {
  zeroed = kConstant;
  EXPECT_EQ(zeroed(1, 2), 6.0f);
  zeroed.set_zero();
  for (const float value : zeroed.values) EXPECT_EQ(value, 0.0f);
}

TEST(Tensor, is_an_eigen_matrix_without_a_copy) {
  Tensor<float, 3, 4> t{};
  auto map = t.matrix();
  map.setConstant(2);
  EXPECT_EQ(map.data(), t.data());
  EXPECT_EQ(t(2, 3), 2.0f);
  Tensor<float, 4, 1> column{};
  column.matrix()(2, 0) = 5;
  EXPECT_EQ(column(2, 0), 5.0f);
}

TEST(MatrixView, takes_tensors_and_eigen_matrices_without_a_copy) {
  Tensor<float, 3, 4> tensor{};
  RowMajor matrix = RowMajor::Zero();
  const RowMajor constant = RowMajor::Ones();
  float storage[12] = {};
  Eigen::Map<RowMajor> map(storage);
  Eigen::Map<const RowMajor> constant_map(storage);
  EXPECT_EQ(address_of(tensor), tensor.data());
  EXPECT_EQ(address_of(matrix), matrix.data());
  EXPECT_EQ(address_of(constant), constant.data());
  EXPECT_EQ(address_of(map), &storage[0]);
  EXPECT_EQ(address_of(constant_map), &storage[0]);
  EXPECT_EQ(mutable_address_of(tensor), tensor.data());
  EXPECT_EQ(mutable_address_of(matrix), matrix.data());
  EXPECT_EQ(mutable_address_of(map), &storage[0]);
  EXPECT_EQ(address_of(attune::as_const(attune::view(tensor))), tensor.data());
}

TEST(MatrixView, takes_vectors_of_either_storage_order) {
  Eigen::Matrix<float, 4, 1> column = Eigen::Matrix<float, 4, 1>::Ones();
  Eigen::Matrix<float, 1, 4, Eigen::RowMajor> row = Eigen::Matrix<float, 1, 4, Eigen::RowMajor>::Ones();
  const MatrixView<const float, 4, 1> of_column(column);
  const MatrixView<const float, 1, 4> of_row(row);
  EXPECT_EQ(of_column(3, 0), 1.0f);
  EXPECT_EQ(of_row(0, 3), 1.0f);
}

TEST(MatrixView, transposes_and_cuts_by_strides) {
  Tensor<float, 4, 6> t;
  for (int i = 0; i < t.size; ++i) t.values[i] = static_cast<float>(i);
  const auto v = attune::view(t);
  EXPECT_EQ(v(2, 5), 17.0f);
  EXPECT_EQ(v.transpose()(5, 2), 17.0f);
  const auto head = v.columns<2>(4);
  static_assert(head.rows == 4 && head.cols == 2 && head.row_stride == 6);
  EXPECT_EQ(head(2, 1), 17.0f);
  const auto sequence = v.rows_at<2>(2);
  static_assert(sequence.rows == 2 && sequence.cols == 6);
  EXPECT_EQ(sequence(0, 5), 17.0f);
  EXPECT_EQ(head.transpose().rows_at<1>(1)(0, 2), 17.0f);
  head(2, 1) = -1;
  EXPECT_EQ(t(2, 5), -1.0f);
}

TEST(MatrixView, of_a_const_tensor_is_read_only) {
  const auto v = attune::view(kConstant);
  static_assert(std::is_same_v<decltype(v), const MatrixView<const float, 2, 3>>);
  EXPECT_EQ(v.data, kConstant.data());
}
