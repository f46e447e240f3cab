// expect: attune::Sequential: a model that begins with a Frozen layer keeps no tape for dx; list its layers
// kilobytes: 34  the way from the call to the layer
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
using Block = attune::Sequential<attune::Frozen<Layer, kLayer>, Layer>;
using Model = attune::Sequential<Layer, attune::Residual<Block>>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }
