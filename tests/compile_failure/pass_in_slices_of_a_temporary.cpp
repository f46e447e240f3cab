// expect: attune: a pass in slices reads its data until it ends, and this is a temporary; store it in a
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::Trainer<Model> trainer;
Model::Output target;
auto pass = trainer.accumulate_in_slices(Model::Input{}, target);
