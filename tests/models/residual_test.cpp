#include <attune/models/residual.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

template <class Scalar>
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, Scalar>;
template <class Scalar>
using Norm = attune::LayerNorm<attune::NormShape{.rows = 3, .d_model = 4}, Scalar>;

}  // namespace

TEST(Residual, gradients_are_derivatives) {
  check::check_layer_gradients<attune::Residual<Attention<double>>>(-1, 1);
  check::check_layer_gradients<attune::Residual<attune::Sequential<Norm<double>, Attention<double>>>>(-1, 1);
}

TEST(Residual, adds_its_input) {
  using Layer = Attention<float>;
  static Layer::Parameters parameters;
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  Layer::Input x;
  check::fill(x, rng);
  Layer::Output y, with_input;
  Layer::InferenceScratch scratch;
  attune::infer<Layer>(parameters, x, y, scratch, attune::CausalMask{});
  attune::infer<attune::Residual<Layer>>(parameters, x, with_input, scratch, attune::CausalMask{});
  for (int i = 0; i < y.size; ++i) EXPECT_EQ(with_input.values[i], y.values[i] + x.values[i]);
}
