// expect: attune::Adapted: the layer, and each one in it, needs ParametersOf<Matrix, Vector>
#include "layer_without_sets.hpp"

attune::Trainer<attune::Adapted<ByHand, kByHand, attune::LowRank{.rank = 2}>> trainer;
