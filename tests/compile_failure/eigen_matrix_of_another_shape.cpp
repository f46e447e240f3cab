// expect: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <Eigen/Core>

#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 8, 4, Eigen::RowMajor> x;
  Layer::forward(parameters, x, y, scratch);
}
