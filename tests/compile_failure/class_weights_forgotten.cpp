// expect: attune::Trainer: this loss has class weights; pass it to every call: step(inputs, targets, options
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::WeightedCrossEntropy<4>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}).ok(); }
