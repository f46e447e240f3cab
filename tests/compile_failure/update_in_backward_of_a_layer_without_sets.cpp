// expect: attune::UpdateInBackward: the model, and each layer in it, needs ParametersOf<Matrix, Vector>
#include "layer_without_sets.hpp"

attune::Trainer<ByHand, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
