// Compares the model with PyTorch, layer by layer: python3 -m attune_torch check.
#if ATTUNE_CHECK_FLOAT
#include <vit_file.hpp>
#endif
#if ATTUNE_CHECK_INT8
#include <vit_int8.hpp>
#endif
#include <vit_samples.hpp>
#include "vit.hpp"

namespace {

using namespace vit;
using Samples = vit_samples;
using Whole = Model;
using WholeNames = Names;
using Layers = attune::Sequential<
    attune::Linear<attune::LinearShape{.rows = 16, .d_in = 4, .d_out = 24}>,
    attune::ClassToken<attune::TokenShape{.seq_len = 16, .d_model = 24}>,
    attune::LearnedPositions<attune::PositionShape{.seq_len = 17, .d_model = 24}>,
    attune::EncoderLayer<kBlock>,
    attune::EncoderLayer<kBlock>,
    attune::LayerNorm<attune::NormShape{.rows = 17, .d_model = 24}>,
    attune::Pooling<attune::PoolingShape{.seq_len = 17, .d_model = 24, .kind = attune::PoolingKind::kFirst}>,
    attune::Linear<attune::LinearShape{.rows = 1, .d_in = 24, .d_out = 10}>>;
using LayerNames = attune::PyTorchFile<attune::PyTorchPart<attune::HuggingFaceModule<kBlockNames, Layers, "patches", "cls_token", "pos_embed", "blocks.0", "blocks.1", "norm", "head">>, attune::TensorShape<"patches.weight", 24, 1, 2, 2>, attune::TensorShape<"cls_token", 1, 1, 24>, attune::TensorShape<"pos_embed", 1, 17, 24>>;
constexpr const char* kPaths[] = {"patches", "ClassToken", "LearnedPositions", "blocks.0", "blocks.1", "norm", "Pooling", "head"};
constexpr const char* kRest = "output";  // not one by one
constexpr attune::Role kLoraRoles = attune::Role::kQueries | attune::Role::kValues;

}  // namespace

#include <attune_torch/check.hpp>

int main() {
  bool right = true;
#if ATTUNE_CHECK_FLOAT
  right = check<vit_file>("float", 0.0001f) && right;  // of a layer's largest output
  print_trainings<Whole, vit_file>();
#endif
#if ATTUNE_CHECK_INT8
  right = check<vit_int8>("int8", 0.1f) && right;
#endif
  return right ? 0 : 1;
}
