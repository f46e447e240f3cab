// expect: attune::from_flat: the array has another number of values than the parameters; it is of another model, or of another shape of this one
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
constexpr float kValues[10] = {};
constexpr auto kParameters = attune::from_flat<Model::Parameters>(kValues);
