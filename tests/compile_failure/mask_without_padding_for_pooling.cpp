// expect: attune: this model uses only a mask's padding, and this mask has none; leave it out, or add
#include <attune/attune.hpp>

using Pool = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>, Pool>;
attune::Trainer<Model> trainer;
void use(const Model::Input& x, const Model::Output& target) {
  trainer.step(x, target, {}, attune::NoClipping{}, attune::CausalMask{});
}
