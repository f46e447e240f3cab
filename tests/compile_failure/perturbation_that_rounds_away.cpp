// expect: attune::ForwardOnlyTrainer: the perturbation's size must be in [1e-6, 1] for float, [1e-14, 1] for double; parameters lose a smaller one to rounding, and 1e-3 is usual
#include "journal.hpp"

static attune::ForwardOnlyTrainer<Model, attune::MeanSquaredError, 1, attune::Perturbation{1e-7}> trainer;
