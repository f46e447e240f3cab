// expect: attune::from_flat: the array and the parameters have different sizes; the array belongs to another model or shape
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
constexpr float kValues[10] = {};
constexpr auto kParameters = attune::from_flat<Model::Parameters>(kValues);
