// expect: attune::MatrixView: the matrix is column-major; declare it with Eigen::RowMajor, or copy it into a Tensor
#include <Eigen/Core>

#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 4, 8> x;
  Layer::forward(parameters, x, y, scratch);
}
