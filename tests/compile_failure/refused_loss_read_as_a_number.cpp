// expect: StepResult
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

float loss = trainer.step(x, target, {});
