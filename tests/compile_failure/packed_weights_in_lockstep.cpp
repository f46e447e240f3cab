// expect: attune: packed int8 weights need a model in float, one sequence at a time; use Int8Weights for
// errors: 2  the product of forward, and that of backward
// kilobytes: 20  the way from the trainer to the product, twice
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
static Layer::ParametersOf<attune::PackedInt8Weights, attune::Tensor> base;
using Model = attune::Adapted<Layer, base, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 17, attune::Lockstep>;
auto step(Trainer& trainer, const Trainer::BatchInput& x, const Trainer::BatchTarget& target) {
  return trainer.step(x, target, {});
}
