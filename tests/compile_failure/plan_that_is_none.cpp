// expect: attune::Trainer: the fifth template argument is not a memory plan: use Streaming, Lockstep
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::NoClipping> trainer;
