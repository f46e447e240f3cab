// expect: attune::WeightedCrossEntropy: the number of weights must equal the number of classes
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
constexpr attune::WeightedCrossEntropy<3> kLoss{{{1, 2, 3}}};
attune::Trainer<Layer, attune::WeightedCrossEntropy<3>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}, attune::NoClipping{}, attune::NoMask{}, kLoss).ok(); }
