// expect: attune::Loss: this is an optimizer; the loss comes before it: Trainer<Model, Loss, Optimizer>
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
attune::Trainer<Model, attune::AdamW, attune::CrossEntropy<>> trainer;
