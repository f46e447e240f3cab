#include <Eigen/Core>

#include <attune/kernels/matrix_view.hpp>

#include <array>
#include <span>
#include <vector>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

using attune::MatrixView;
using attune::Tensor;
using attune::view;

using View = MatrixView<float, 2, 3>;
using ConstView = MatrixView<const float, 2, 3>;

float* written(View matrix) { return matrix.data; }
const float* read(ConstView matrix) { return matrix.data; }
float sum(ConstView matrix) {
  float total = 0;
  for (int i = 0; i < matrix.rows; ++i) {
    for (int j = 0; j < matrix.cols; ++j) total += matrix(i, j);
  }
  return total;
}

Tensor<float, 2, 3> made_tensor() { return {{1, 2, 3, 4, 5, 6}}; }
std::array<float, 6> made_array() { return {1, 2, 3, 4, 5, 6}; }
Eigen::Matrix<float, 2, 3, Eigen::RowMajor> made_matrix() { return made_tensor().matrix(); }

constexpr std::array<float, 6> kFlat{1, 2, 3, 4, 5, 6};
static_assert(ConstView(kFlat)(1, 0) == 4);

static_assert(std::is_trivially_copyable_v<View> && sizeof(View) == sizeof(float*));
static_assert(!std::is_convertible_v<ConstView, View> && !std::is_convertible_v<std::nullptr_t, View>);

}  // namespace

TEST(MatrixView, takes_arrays_without_a_copy) {
  float rows[2][3] = {};
  float flat[6] = {};
  std::array<std::array<float, 3>, 2> array_rows{};
  std::array<float, 6> array{};
  const std::span<float, 6> span(flat);
  EXPECT_EQ(written(rows), &rows[0][0]);
  EXPECT_EQ(written(flat), flat);
  EXPECT_EQ(written(array_rows), array_rows[0].data());
  EXPECT_EQ(written(array), array.data());
  EXPECT_EQ(written(span), flat);
  EXPECT_EQ(written(std::span<float, 6>(flat)), flat);
  EXPECT_EQ(read(rows), &rows[0][0]);
  EXPECT_EQ(read(flat), flat);
  EXPECT_EQ(read(array_rows), array_rows[0].data());
  EXPECT_EQ(read(array), array.data());
  EXPECT_EQ(read(span), flat);
  EXPECT_EQ(read(std::span<const float, 6>(flat)), flat);
}

TEST(MatrixView, of_constants_is_read_only) {
  static const float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const std::array<std::array<float, 3>, 2> array_rows{{{1, 2, 3}, {4, 5, 6}}};
  EXPECT_EQ(sum(rows), 21.0f);
  EXPECT_EQ(sum(array_rows), 21.0f);
  EXPECT_EQ(sum(kFlat), 21.0f);
  static_assert(std::is_same_v<decltype(view(rows)), ConstView>);
}

TEST(MatrixView, reads_rows_of_arrays_as_rows) {
  float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const ConstView matrix(rows);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_EQ(matrix(i, j), rows[i][j]);
  }
}

TEST(MatrixView, of_several_matrices_stacks_them) {
  float batch[2][2][3] = {};
  std::array<Tensor<float, 2, 3>, 2> tensors{};
  const MatrixView<float, 4, 3> of_batch(batch), of_tensors(tensors);
  batch[1][0][2] = 7;
  tensors[1](0, 2) = 8;
  EXPECT_EQ(of_batch(2, 2), 7.0f);
  EXPECT_EQ(of_tensors(2, 2), 8.0f);
}

TEST(MatrixView, reads_temporaries_until_the_end_of_the_call) {
  EXPECT_EQ(sum(made_tensor()), 21.0f);
  EXPECT_EQ(sum(made_array()), 21.0f);
  EXPECT_EQ(sum(made_matrix()), 21.0f);
}

TEST(MatrixView, writes_through_temporaries_that_own_nothing) {
  Tensor<float, 2, 3> tensor{};
  EXPECT_EQ(written(tensor.matrix()), tensor.data());
  EXPECT_EQ(written(view(tensor)), tensor.data());
}

TEST(MatrixView, takes_strided_views_of_one_row) {
  Tensor<float, 4, 6> t{};
  t(2, 4) = 5;
  // One row of some columns is dense, and so is one column of one row.
  const MatrixView<const float, 1, 2> row = view(t).columns<2>(4).rows_at<1>(2);
  EXPECT_EQ(row(0, 0), 5.0f);
  const MatrixView<float, 1, 1> one = view(t).columns<1>(4).rows_at<1>(2);
  EXPECT_EQ(one(0, 0), 5.0f);
}

TEST(MatrixView, from_a_pointer_is_explicit) {
  float flat[6] = {};
  float* const pointer = flat;
  EXPECT_EQ(View(pointer).data, flat);
  EXPECT_EQ(ConstView{pointer}.data, flat);
  static_assert(std::is_constructible_v<View, float*> && !std::is_convertible_v<std::nullptr_t, ConstView>);
}

TEST(View, has_the_extents_of_its_source) {
  float rows[2][3] = {};
  std::array<std::array<double, 3>, 2> array_rows{};
  float flat[6] = {};
  static_assert(std::is_same_v<decltype(view(rows)), View>);
  static_assert(std::is_same_v<decltype(view(array_rows)), MatrixView<double, 2, 3>>);
  static_assert(std::is_same_v<decltype(view(flat)), MatrixView<float, 1, 6>>);
  static_assert(std::is_same_v<decltype(view(kFlat)), MatrixView<const float, 1, 6>>);
  EXPECT_EQ(view(rows).data, &rows[0][0]);
  EXPECT_EQ(view(flat).data, flat);
  EXPECT_EQ(view(array_rows).data, array_rows[0].data());
}

TEST(View, of_all_numbers_is_dense) {
  Tensor<float, 4, 6> t{};
  float rows[2][3] = {};
  EXPECT_EQ(attune::dense_view(t).data, t.data());
  EXPECT_EQ(attune::dense_view(view(t)).data, t.data());
  EXPECT_EQ(attune::dense_view(rows).data, &rows[0][0]);
  static_assert(decltype(view(t).rows_at<2>(1))::kDense);
  static_assert(decltype(view(t).columns<6>(0))::kDense);
  static_assert(!decltype(view(t).columns<2>(0))::kDense && !decltype(view(t).transpose())::kDense);
  static_assert(decltype(view(t).columns<2>(0).rows_at<1>(0))::kDense);
  static_assert(!decltype(view(t).columns<1>(0))::kDense);
  static_assert(decltype(view(t).rows_at<1>(0).transpose())::kDense);
}
