// LayerScale: y = x ∘ w, in models, in a block of a ViT, and its name in files.
#include <attune/layers/layer_scale.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "problem.hpp"

namespace {

using namespace check::in_models;
using attune::LayerScale;
using attune::ScaleShape;

constexpr ScaleShape kShape{.rows = 3, .d_model = 5};
using Layer = LayerScale<kShape>;

struct OfScale {
  template <class Scalar>
  using Own = LayerScale<ScaleShape{.rows = kTokens, .d_model = kWidth, .initial = 0.5}, Scalar>;
  static constexpr int kScalars = kWidth, kVectors = kWidth;
};

struct OfSharedScale {
  template <class Scalar>
  using Own =
      LayerScale<ScaleShape{.rows = kTokens, .d_model = kWidth, .initial = 0.5, .shared = true}, Scalar>;
  static constexpr int kScalars = 1, kVectors = 1;
};

// x + w₁ ∘ attention(norm(x)), and the same of a network: a block of timm's and DINOv2's ViTs.
constexpr int kSeqLen = 4, kModel = 6;
template <class Scalar>
using Norm = attune::LayerNorm<attune::NormShape{kSeqLen, kModel}, Scalar>;
template <class Scalar>
using Scale = LayerScale<ScaleShape{kSeqLen, kModel, 0.25}, Scalar>;
template <class Scalar>
using Block = attune::Sequential<
    attune::Residual<attune::Sequential<
        Norm<Scalar>,
        attune::MultiHeadAttention<
            attune::AttentionShape{.seq_len = kSeqLen, .d_model = kModel, .num_heads = 2}, Scalar>,
        Scale<Scalar>>>,
    attune::Residual<attune::Sequential<
        Norm<Scalar>,
        attune::FeedForward<attune::FeedForwardShape{.rows = kSeqLen, .d_model = kModel, .d_ff = 8}, Scalar>,
        Scale<Scalar>>>>;
// The same as an encoder layer.
template <class Scalar>
using Layered = attune::EncoderLayerOf<
    attune::Sequential<
        attune::MultiHeadAttention<
            attune::AttentionShape{.seq_len = kSeqLen, .d_model = kModel, .num_heads = 2}, Scalar>,
        Scale<Scalar>>,
    attune::Sequential<
        attune::FeedForward<attune::FeedForwardShape{.rows = kSeqLen, .d_model = kModel, .d_ff = 8}, Scalar>,
        Scale<Scalar>>,
    Norm<Scalar>, attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;

}  // namespace

ATTUNE_TEST_BRIEFLY_IN_MODELS(LayerScale, , OfScale)
ATTUNE_TEST_BRIEFLY_IN_MODELS(LayerScale, shared_, OfSharedScale)
ATTUNE_TEST_IN_MODEL(LayerScale, trains_biases_and_norms, trains_biases_and_norms, OfScale)

TEST(LayerScale, starts_with_the_value_of_its_option) {
  Layer::Parameters parameters;
  attune::Rng rng(1);
  parameters.initialize(attune::XavierUniform{}, rng);
  for (const float value : parameters.weight.values) EXPECT_EQ(value, 1e-5f);
}

TEST(LayerScale, works_in_place) {
  check::Problem<Layer> a(6);
  a.expect_in_place();
}

TEST(LayerScale, takes_no_memory_besides_its_factors) {
  static_assert(sizeof(Layer::Parameters) == 5 * sizeof(float));
  static_assert(std::is_empty_v<Layer::Tape> && std::is_empty_v<Layer::Scratch>);
}

TEST(LayerScale, ends_the_branches_of_a_vit) {
  check::check_layer_gradients<Block<double>>(-1, 1);
  attune::SequenceLength<kSeqLen> length;
  (void)length.set_length(3);
  check::check_layer_gradients<Block<double>>(-1, 1, length);
  check::check_layer_gradients<Layered<double>>(-1, 1, length);
}

TEST(LayerScale, is_a_parameter_in_files) {
  check::expect_tensors<attune::PyTorchModule<attune::Sequential<Layer>, "blocks.0.ls1.gamma">>(
      "blocks.0.ls1.gamma[5]");
}
