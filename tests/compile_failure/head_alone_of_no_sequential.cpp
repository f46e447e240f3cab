// expect: attune::HeadAlone: the model must be a Sequential whose last layer with parameters is the head; use
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
static Model::Parameters constants;
using Tuned = attune::HeadAlone<Model, constants>;
static_assert(sizeof(Tuned::Parameters) > 0);
