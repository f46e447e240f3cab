// expect: attune::UpdateInBackward: the model and its layers need ParametersOf<Matrix, Vector>, for sets with
#include "layer_without_sets.hpp"

attune::Trainer<ByHand, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
