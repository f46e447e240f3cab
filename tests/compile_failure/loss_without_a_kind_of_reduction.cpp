// expect: attune::Loss: the type has no kMeanOverBatch (whether a batch's loss is a mean); training/loss.hpp
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {};

attune::Trainer<Layer, Loss> trainer;
