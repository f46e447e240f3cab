// expect: attune::MatrixView: the matrix is strided; copy it into a Tensor or a dense matrix
#include <Eigen/Core>

#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 4, 16, Eigen::RowMajor> wide;
  const auto x = wide.leftCols<8>();
  Layer::forward(parameters, x, y, scratch);
}
