// expect: attune::Int8TrainingWith: the plan must compute one sequence at a time
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 17,
                attune::Int8TrainingWith<attune::Lockstep>>
    trainer;
