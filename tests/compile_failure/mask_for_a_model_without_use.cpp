// expect: attune: no layer of this model uses a mask; leave it out, or add attention or pooling
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

int main() { return trainer.step(x, target, {}, attune::NoClipping{}, attune::CausalMask{}).ok(); }
