// expect: attune::Workspace: this Workspace does not list the model
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
using Other = attune::Linear<attune::LinearShape{2, 3, 4}>;
attune::Workspace<Model> workspace;
attune::Trainer<Other, attune::MeanSquaredError, attune::AdamW, 1, attune::InWorkspace<workspace>> trainer;
auto result = trainer.accumulate(Other::Input{}, Other::Output{});
