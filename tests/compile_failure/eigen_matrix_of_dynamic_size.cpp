// expect: attune::MatrixView: the size is known only at run time; check it with attune::checked_view, or fix it at compile time
#include <Eigen/Core>

#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Eigen::MatrixXf& x, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch);
}
