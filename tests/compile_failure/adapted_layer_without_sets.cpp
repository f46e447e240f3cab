// expect: attune::Adapted: the layer and its parts need ParametersOf<Matrix, Vector>, for sets with factors
#include "layer_without_sets.hpp"

attune::Trainer<attune::Adapted<ByHand, kByHand, attune::LowRank{.rank = 2}>> trainer;
