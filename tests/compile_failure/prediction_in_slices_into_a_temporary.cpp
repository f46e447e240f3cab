// expect: attune: a pass in slices reads its data until it ends, and this is a temporary; store it in a
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::Trainer<Model> trainer;
Model::Input x;
Model::InferenceScratch scratch;
auto pass = attune::infer_in_slices<Model>(trainer.parameters(), x, Model::Output{}, scratch);
