// expect: attune::host::ParallelTrainer: the plan must be Streaming or Int8Training
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>
#include <attune/host/parallel_trainer.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::host::ParallelTrainer<Layer, attune::MeanSquaredError, attune::AdamW, 17, attune::Lockstep> trainer;
