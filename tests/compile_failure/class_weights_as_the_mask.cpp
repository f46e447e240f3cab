// expect: attune: this argument is not a mask; masks have hide and bias (execution/attention_mask.hpp)
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
constexpr attune::WeightedCrossEntropy<4> kLoss{{{1, 2, 3, 4}}};
attune::Trainer<Layer, attune::WeightedCrossEntropy<4>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}, attune::NoClipping{}, kLoss).ok(); }
